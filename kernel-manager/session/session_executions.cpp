// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_executions.hpp"

#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/languages/named_environments.hpp"
#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;

namespace {

/// "exe_" and 24 hexadecimal digits. They begin with the time in milliseconds: of executions that
/// follow each other, the store's index has neighbours, so that a commit writes few of its pages.
Result<std::string> make_execution_id() {
    constexpr std::size_t kRandomBytes = 6;
    BOOST_OUTCOME_TRY(const std::string random, random_hex(kRandomBytes));
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    std::array<char, 40> text{};
    (void)std::snprintf(  // it fits for ten thousand years
        text.data(),
        text.size(),
        "exe_%012llx%s",
        static_cast<unsigned long long>(now.count()),
        random.c_str());
    return std::string(text.data());
}

}  // namespace

SessionExecutions::SessionExecutions(
    boost::asio::io_context& io,
    const SessionSetup& setup,
    SessionKernels& kernels,
    SessionAccount& account,
    SessionTools& tools,
    std::function<void()> on_accepted)
    : io_(io),
      setup_(setup),
      kernels_(kernels),
      account_(account),
      tools_(tools),
      on_accepted_(std::move(on_accepted)) {}

std::optional<LimitRefusal> SessionExecutions::refusal() const {
    return account_.refuse_agent(setup_.options.limits, steady_clock::now());
}

Result<std::shared_ptr<Execution>> SessionExecutions::begin(ExecutionRequest request) {
    BOOST_OUTCOME_TRY(const Accepted accepted, accept(std::move(request)));
    start(accepted);
    return accepted.execution;
}

Result<std::vector<std::shared_ptr<Execution>>> SessionExecutions::begin_all(
    std::vector<ExecutionRequest> requests) {
    std::vector<Accepted> all;
    for (ExecutionRequest& request : requests) {
        auto accepted = accept(std::move(request));
        if (accepted.has_error()) {
            for (const Accepted& one : all) {
                if (!one.before) {
                    // Ignored: it waits, for nothing was started since.
                    (void)interrupt(one.execution->id());
                }
            }
            return accepted.error();
        }
        all.push_back(std::move(accepted).value());
    }
    std::vector<std::shared_ptr<Execution>> executions;
    for (const Accepted& one : all) {
        start(one);
        executions.push_back(one.execution);
    }
    return executions;
}

Result<SessionExecutions::Accepted> SessionExecutions::accept(ExecutionRequest request) {
    // Of a named environment, also the kernel's name.
    const KernelSpec& main = kernels_.main().spec();
    if (request.language.empty() || request.language == offered_by(main)) {
        request.language = main.language;
    }
    std::string digest = request.idempotency_key.empty() ? "" : digest_of(request);
    BOOST_OUTCOME_TRY(auto seen, book_.find_key(request.idempotency_key, digest));
    if (seen) {
        return Accepted{std::move(seen), true};
    }
    BOOST_OUTCOME_TRY(check(request));
    BOOST_OUTCOME_TRY(auto execution, enqueue(std::move(request), std::move(digest)));
    return Accepted{std::move(execution), false};
}

Status SessionExecutions::check(const ExecutionRequest& request) const {
    if (const SupervisedKernel* kernel = kernels_.find(request.language)) {
        BOOST_OUTCOME_TRY(kernel->check_alive());
    }
    BOOST_OUTCOME_TRY(kernels_.check(request.language));
    const SessionLimits& most = setup_.options.limits;
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
    if (kernels_.waiting() >= limits::kExecutionsQueuedMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "execute: " + std::to_string(limits::kExecutionsQueuedMax) +
                " requests wait in this session already");
    }
    BOOST_OUTCOME_TRY(check_places(request.files));
    return check_files(request.files, setup_.inputs.get());
}

Status SessionExecutions::check_places(const std::vector<InputFile>& files) const {
    for (const InputFile& file : files) {
        if (setup_.mounted.contains(file.path)) {
            // Not even from the same input: a copy in its place would take the mount away.
            return Error::in_field(
                ErrorCode::kInvalidArgument,
                "files/" + std::to_string(&file - files.data()) + "/path",
                "a read-only input is mounted there");
        }
    }
    return ok();
}

std::shared_ptr<TrackedExecution> SessionExecutions::make(
    ExecutionRequest& request, const std::string& id) const {
    const auto execution = std::make_shared<Execution>(
        io_,
        Execution::Order{
            .id = id,
            .session_id = setup_.id,
            .language = request.language,
            .code_sha256 = protocol::sha256_hex(request.code),
            .reasoning = std::move(request.reasoning),
            .metadata = std::move(request.metadata),
            .tools = std::move(request.tools),
            .operator_access = tools_.access(id),
            .passes = request.passes});
    return std::make_shared<TrackedExecution>(TrackedExecution{
        execution,
        make_recorder(id, std::move(request.stdin_text)),
        request.timeout,
        std::move(request.files)});
}

ExecutionRecorder SessionExecutions::make_recorder(
    const std::string& id, std::string stdin_text) const {
    return {
        id,
        setup_.id,
        std::move(stdin_text),
        setup_.options.limits.output_bytes,
        setup_.proxy != nullptr};
}

Result<std::shared_ptr<Execution>> SessionExecutions::enqueue(
    ExecutionRequest request, std::string digest) {
    BOOST_OUTCOME_TRY(const std::string id, make_execution_id());
    auto tracked = make(request, id);
    const std::shared_ptr<Execution> execution = tracked->execution;
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
    SupervisedKernel& kernel = kernels_.open(request.language);
    BOOST_OUTCOME_TRY(
        kernel.enqueue({std::move(message), nullptr, std::move(tracked), steady_clock::now()}));
    ++accepted_;
    account_.accept_agent();
    book_.add(execution, request.idempotency_key, std::move(digest));
    return execution;
}

void SessionExecutions::start(const Accepted& accepted) {
    Execution& execution = *accepted.execution;
    SupervisedKernel* kernel = kernels_.find(execution.order().language);
    if (kernel == nullptr || accepted.before) {
        return;
    }
    on_accepted_();
    kernels_.launch_waiting();
    kernel->dispatch();
    if (execution.phase() == ExecutionPhase::kQueued) {
        execution.mark_queued();
    }
}

std::optional<std::string> SessionExecutions::find_newest() const {
    const auto all = list();
    const auto newest = std::find_if(all.rbegin(), all.rend(), [](const auto& execution) {
        return execution->phase() != ExecutionPhase::kQueued;
    });
    return newest == all.rend() ? std::nullopt : std::optional((*newest)->id());
}

std::vector<std::string> SessionExecutions::begun_since(
    const std::optional<std::string>& earlier, const std::string& language) const {
    std::vector<std::string> begun;
    bool later = !earlier.has_value();
    for (const auto& execution : book_.list()) {
        const std::string& its_language = execution->order().language;
        if (later && execution->phase() != ExecutionPhase::kQueued &&
            (its_language.empty() || its_language == language) && begun.size() < kUndoneNamedMax) {
            begun.push_back(execution->id());
        }
        later = later || execution->id() == earlier;
    }
    return begun;
}

Status SessionExecutions::interrupt(const std::string& id) {
    const auto execution = book_.find(id);
    if (!execution) {
        return Error(ErrorCode::kNotFound, "interrupt: there is no execution " + id);
    }
    if (execution->phase() == ExecutionPhase::kFinished) {
        return Error(ErrorCode::kConflict, "interrupt: " + id + " has finished");
    }
    for (SupervisedKernel* kernel : kernels_.all()) {
        if (auto done = kernel->interrupt_execution(execution)) {
            return std::move(*done);
        }
    }
    return ok();  // its code has ended, its answer is being put together
}

void SessionExecutions::complete(TrackedExecution& tracked, ExecutionResult result) {
    const std::shared_ptr<Execution> execution = tracked.execution;
    result.reasoning = execution->order().reasoning;
    result.metadata = execution->order().metadata;
    // What never ran, and what a client ended, says nothing about the code.
    const bool ran = execution->phase() == ExecutionPhase::kRunning;
    const bool ended_by_others = result.death.has_value() && !is_own_fault(*result.death);
    account_.end_agent(
        ran && !ended_by_others ? vote_of(result.status) : CircuitVote::kNone, steady_clock::now());
    execution->finish(std::move(result));
    book_.settle();
}

}  // namespace cellkeep::session
