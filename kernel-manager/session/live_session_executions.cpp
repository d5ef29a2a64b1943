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
    if (request.language.empty()) {
        request.language = main_->spec().language;
    }
    std::string digest = request.idempotency_key.empty() ? "" : digest_of(request);
    BOOST_OUTCOME_TRY(auto seen, book_.find_key(request.idempotency_key, digest));
    if (seen) {
        return seen;
    }
    BOOST_OUTCOME_TRY(check_execution(request));
    return enqueue(std::move(request), std::move(digest));
}

Status LiveSession::check_execution(const ExecutionRequest& request) const {
    if (const SupervisedKernel* lane = find_lane(request.language)) {
        BOOST_OUTCOME_TRY(lane->check_alive());
    }
    BOOST_OUTCOME_TRY(check_language(request.language));
    const SessionLimits& most = session_limits();
    if (const auto refused = refusal()) {
        return Error(ErrorCode::kLimitExceeded, "execute: " + refused->message, refused->hint);
    }
    if (request.timeout.has_value() && *request.timeout > most.wall) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            "timeout_ms",
            "must be at most " + std::to_string(most.wall.count()) +
                ", the session's limit wall_ms");
    }
    std::size_t waiting = 0;
    for (const SupervisedKernel* lane : lanes()) {
        waiting += lane->waiting();
    }
    if (waiting >= limits::kExecutionsQueuedMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "execute: " + std::to_string(limits::kExecutionsQueuedMax) +
                " requests wait in this session already");
    }
    for (const InputFile& file : request.files) {
        if (setup_.mounted.contains(file.path)) {
            // Not even from the same input: a copy in its place would take the mount away.
            return Error::in_field(
                ErrorCode::kInvalidArgument,
                "files/" + std::to_string(&file - request.files.data()) + "/path",
                "a read-only input is mounted there");
        }
    }
    return check_files(request.files, setup_.inputs.get());
}

Result<std::shared_ptr<Execution>> LiveSession::enqueue(
    ExecutionRequest request, std::string digest) {
    BOOST_OUTCOME_TRY(const auto random, random_hex(12));
    const auto execution = std::make_shared<Execution>(
        io_,
        Execution::Order{
            .id = "exe_" + random,
            .session_id = setup_.id,
            .language = request.language,
            .code_sha256 = protocol::sha256_hex(request.code),
            .reasoning = std::move(request.reasoning),
            .metadata = std::move(request.metadata)});
    auto tracked = std::make_shared<TrackedExecution>(TrackedExecution{
        execution,
        ExecutionRecorder(
            execution->id(),
            setup_.id,
            std::move(request.stdin_text),
            session_limits().output_bytes,
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
    SupervisedKernel& lane = open_lane(request.language);
    BOOST_OUTCOME_TRY(
        lane.enqueue({std::move(message), nullptr, std::move(tracked), steady_clock::now()}));
    ++executions_;
    account_.accept_agent();
    book_.add(execution, request.idempotency_key, std::move(digest));
    touch();
    launch_lanes();
    lane.dispatch();
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
    for (SupervisedKernel* lane : lanes()) {
        if (auto done = lane->interrupt_execution(execution)) {
            return std::move(*done);
        }
    }
    return ok();  // its code has ended, its answer is being put together
}

void LiveSession::complete(TrackedExecution& tracked, ExecutionResult result) {
    const std::shared_ptr<Execution> execution = tracked.execution;
    result.reasoning = execution->order().reasoning;
    result.metadata = execution->order().metadata;
    // What never ran, and what somebody ended, says nothing about the code.
    const bool ran = execution->phase() == ExecutionPhase::kRunning;
    const bool ended_by_others = result.death.has_value() && !is_own_fault(*result.death);
    account_.end_agent(
        ran && !ended_by_others ? vote_of(result.status) : CircuitVote::kNone, steady_clock::now());
    execution->finish(std::move(result));
    book_.settle();
}

}  // namespace cellkeep::session
