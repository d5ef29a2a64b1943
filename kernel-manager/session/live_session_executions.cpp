// SPDX-License-Identifier: Apache-2.0
//
// Executions of agents: how they come into the queue, are found again, and are stopped one by one.
#include "kernel-manager/session/live_session.hpp"
#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"

#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;

Result<std::shared_ptr<Execution>> LiveSession::begin(ExecutionRequest request) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "execute: the session has ended");
    }
    std::string digest = request.idempotency_key.empty() ? "" : digest_of(request);
    BOOST_OUTCOME_TRY(auto seen, book_.find_key(request.idempotency_key, digest));
    if (seen) {
        return seen;
    }
    BOOST_OUTCOME_TRY(check_execution(request));
    return enqueue(std::move(request), std::move(digest));
}

Result<std::shared_ptr<Execution>> LiveSession::enqueue(
    ExecutionRequest request, std::string digest) {
    BOOST_OUTCOME_TRY(const auto random, random_hex(12));
    const auto execution = std::make_shared<Execution>(
        io_,
        Execution::Order{
            .id = "exe_" + random,
            .session_id = setup_.id,
            .code_sha256 = protocol::sha256_hex(request.code),
            .reasoning = std::move(request.reasoning),
            .metadata = std::move(request.metadata)});
    auto tracked = std::make_shared<TrackedExecution>(TrackedExecution{
        execution,
        ExecutionRecorder(
            execution->id(),
            setup_.id,
            std::move(request.stdin_text),
            setup_.options.limits.output_bytes,
            setup_.proxy != nullptr),
        request.timeout,
        std::move(request.files)});
    Message message = Message::make(
        Channel::kShell,
        protocol::make_header("execute_request", "api-" + setup_.id, "cellkeep"),
        json::object(),
        {{"code", request.code},
         {"silent", false},
         {"store_history", request.store_history},
         {"user_expressions", json::object()},
         {"allow_stdin", true},
         {"stop_on_error", false}});
    BOOST_OUTCOME_TRY(
        queue_.push({std::move(message), nullptr, std::move(tracked), steady_clock::now()}));
    ++executions_;
    guard_.accept_agent();
    book_.add(execution, request.idempotency_key, std::move(digest));
    touch();
    dispatch_next();
    if (execution->phase() == ExecutionPhase::kQueued) {
        execution->mark_queued();
    }
    return execution;
}

std::shared_ptr<Execution> LiveSession::find_execution(const std::string& execution_id) const {
    return book_.find(execution_id);
}

std::vector<std::shared_ptr<Execution>> LiveSession::list_executions() const {
    return book_.list();
}

Status LiveSession::interrupt_execution(const std::string& execution_id) {
    const auto execution = book_.find(execution_id);
    if (!execution) {
        return Error(ErrorCode::kNotFound, "interrupt: there is no execution " + execution_id);
    }
    if (execution->phase() == ExecutionPhase::kFinished) {
        return Error(ErrorCode::kConflict, "interrupt: " + execution_id + " has finished");
    }
    if (execution->phase() == ExecutionPhase::kRunning) {
        const bool runs = current_.has_value() && current_->request.execution &&
                          current_->request.execution->execution == execution;
        return runs ? interrupt() : ok();  // its code has ended, its answer is being put together
    }
    auto waiting = queue_.take_execution(execution_id);
    CELLKEEP_CHECK(waiting.has_value());  // queued is what waits
    publish(messages_.status("busy", &waiting->message));
    ExecutionResult result = waiting->execution->recorder.finish(Cut::kInterrupt);
    result.error->name = "Cancelled";
    result.error->message = "It was taken out of the queue before it ran.";
    result.metrics.queued = std::chrono::duration_cast<std::chrono::microseconds>(
        steady_clock::now() - waiting->queued_at);
    complete(*waiting->execution, std::move(result));
    publish(messages_.status("idle", &waiting->message));
    if (life_blocked_) {
        watch_life();
    }
    return ok();
}

}  // namespace cellkeep::session
