// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/live_session.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;
using std::chrono::system_clock;

std::shared_ptr<LiveSession> LiveSession::create(
    boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox) {
    return std::shared_ptr<LiveSession>(new LiveSession(io, std::move(setup), std::move(sandbox)));
}

LiveSession::LiveSession(boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox)
    : io_(io),
      setup_(std::move(setup)),
      sandbox_(std::move(sandbox)),
      workspace_(sandbox_),
      sandbox_events_(io),
      messages_("cellkeep-" + setup_.id),
      journal_(limits::kJournalMessagesMax, limits::kJournalBytesMax),
      start_timer_(io),
      restart_budget_(limits::kRestartsMax, limits::kRestartWindow),
      queue_(limits::kShellQueueMax, limits::kShellQueueBytesMax),
      wall_timer_(io),
      cpu_timer_(io),
      uncork_timer_(io),
      kill_timer_(io),
      created_at_(system_clock::now()),
      created_steady_(steady_clock::now()),
      activity_(created_steady_),
      clients_([this] { watch_life(); }),
      life_timer_(io),
      usage_seen_at_(created_steady_) {}

LiveSession::~LiveSession() {
    close({Death::Kind::kRequested, 0});
}

boost::asio::awaitable<Status> LiveSession::start() {
    const auto self = shared_from_this();
    BOOST_OUTCOME_CO_TRY(write_files(setup_.options.files));
    setup_.options.files.clear();
    BOOST_OUTCOME_CO_TRY(with_context(
        workspace_.make_directory(setup_.options.working_directory), "working_directory"));

    // A duplicate, because the sandbox keeps and closes its own.
    UniqueFd events(::fcntl(sandbox_.event_fd(), F_DUPFD_CLOEXEC, 0));
    if (!events) {
        co_return Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
    boost::system::error_code error;
    sandbox_events_.assign(events.get(), error);
    if (error) {
        co_return Error(ErrorCode::kSystem, "watch the sandbox: " + error.message());
    }
    (void)events.release();
    watch_sandbox();
    BOOST_OUTCOME_CO_TRY(launch_kernel());
    Status ready = co_await Completion<Status>::wait(ready_);
    if (ready.has_value()) {
        // Only now: until it is ready nobody could remove it.
        touch();
        watch_life();
    }
    co_return ready;
}

SessionInfo LiveSession::info() const {
    SessionInfo info;
    info.id = setup_.id;
    info.kernel_id = setup_.kernel_id;
    info.language = setup_.options.language;
    info.state = state_;
    info.death = death_;
    info.limits = setup_.options.limits;
    info.environment = setup_.spec.environment;
    info.isolation = sandbox_.isolation();
    info.metadata = setup_.options.metadata;
    info.owner = setup_.options.owner;
    info.created_at = created_at_;
    info.last_activity = created_at_ + std::chrono::duration_cast<system_clock::duration>(
                                           activity_.last() - created_steady_);
    info.executions = executions_;
    info.restarts = restarts_;
    info.connections = clients_.count();
    info.connection_file = connection_file_;
    info.output_dropped = journal_.dropped();
    return info;
}

void LiveSession::subscribe(OutputObserver* observer) {
    observers_.push_back(observer);
}

void LiveSession::unsubscribe(OutputObserver* observer) {
    std::erase(observers_, observer);
    resume_output();
}

void LiveSession::resume_output() {
    const bool congested = std::any_of(
        observers_.begin(), observers_.end(), [](const auto* one) { return one->congested(); });
    if (!congested && process_) {
        process_->resume_reading();
    }
}

boost::asio::awaitable<Result<ExecutionResult>> LiveSession::execute(ExecutionRequest request) {
    const auto self = shared_from_this();
    const auto accepted = accept_execution(std::move(request));
    if (accepted.has_error()) {
        co_return accepted.error();
    }
    const auto finished = co_await Completion<FinishedExecution>::wait(accepted.value());
    co_return *finished;
}

Status LiveSession::check_execution(const ExecutionRequest& request) const {
    if (state_ == KernelState::kDead) {
        return Error(
            ErrorCode::kConflict,
            "execute: " + (death_ ? describe(*death_) : std::string("the interpreter is gone")),
            "Restart the session.");
    }
    const SessionLimits& session_limits = setup_.options.limits;
    if (session_limits.executions.has_value() && executions_ >= *session_limits.executions) {
        return Error(
            ErrorCode::kLimitExceeded,
            "execute: the session's budget of " + std::to_string(*session_limits.executions) +
                " executions is used up");
    }
    if (request.timeout.has_value() && *request.timeout > session_limits.wall) {
        return Error(
            ErrorCode::kInvalidArgument,
            "execute: timeout_ms is above the session's wall_ms of " +
                std::to_string(session_limits.wall.count()));
    }
    if (queue_.size() >= limits::kExecutionsQueuedMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "execute: " + std::to_string(limits::kExecutionsQueuedMax) +
                " requests wait in this session already");
    }
    return ok();
}

LiveSession::Acceptance LiveSession::accept_execution(ExecutionRequest request) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "execute: the session has ended");
    }
    if (!request.idempotency_key.empty()) {
        if (const auto seen = by_key_.find(request.idempotency_key); seen != by_key_.end()) {
            return seen->second.completion;
        }
    }
    BOOST_OUTCOME_TRY(check_execution(request));
    BOOST_OUTCOME_TRY(write_files(request.files));
    BOOST_OUTCOME_TRY(const auto random, random_hex(12));
    const std::string execution_id = "exe_" + random;
    const auto completion = std::make_shared<Completion<FinishedExecution>>(io_);
    auto execution = std::make_shared<TrackedExecution>(TrackedExecution{
        execution_id,
        ExecutionRecorder(
            execution_id,
            setup_.id,
            std::move(request.stdin_text),
            setup_.options.limits.output_bytes),
        completion,
        request.timeout});
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
        queue_.push({std::move(message), nullptr, std::move(execution), steady_clock::now()}));
    ++executions_;
    if (!request.idempotency_key.empty()) {
        by_key_.emplace(request.idempotency_key, KeyedExecution{execution_id, completion});
    }
    touch();
    dispatch_next();
    return completion;
}

Status LiveSession::write_files(const std::vector<InputFile>& files) {
    for (const InputFile& file : files) {
        BOOST_OUTCOME_TRY(const auto path, sandbox::parse_workspace_path(file.path));
        BOOST_OUTCOME_TRY(workspace_.write_file(path, file.bytes));
    }
    return ok();
}

void LiveSession::remember(const FinishedExecution& result) {
    history_bytes_ += result->retained_bytes;
    history_.push_back(result);
    while (history_.size() > limits::kExecutionHistoryMax ||
           (history_bytes_ > limits::kExecutionHistoryBytesMax && history_.size() > 1)) {
        const FinishedExecution forgotten = history_.front();
        history_bytes_ -= forgotten->retained_bytes;
        history_.pop_front();
        std::erase_if(by_key_, [&](const auto& entry) { return entry.second.id == forgotten->id; });
    }
}

std::optional<ExecutionResult> LiveSession::find_execution(const std::string& execution_id) const {
    const auto found = std::find_if(history_.begin(), history_.end(), [&](const auto& result) {
        return result->id == execution_id;
    });
    return found == history_.end() ? std::nullopt : std::optional(**found);
}

void LiveSession::complete(TrackedExecution& execution, ExecutionResult result) {
    const auto finished = std::make_shared<const ExecutionResult>(std::move(result));
    remember(finished);
    execution.completion->set(finished);
}

ExecutionMetrics LiveSession::measure(const Current& current) const {
    using std::chrono::duration_cast;
    using std::chrono::microseconds;
    ExecutionMetrics metrics;
    metrics.wall = duration_cast<microseconds>(steady_clock::now() - current.started_at);
    metrics.queued = duration_cast<microseconds>(current.started_at - current.request.queued_at);
    if (const auto usage = sandbox_.usage(); usage.has_value()) {
        metrics.cpu = usage.value().cpu_time - current.cpu_at_start;
        metrics.memory_peak_bytes = usage.value().memory_peak_bytes;
    }
    return metrics;
}

boost::asio::awaitable<Status> LiveSession::restart() {
    const auto self = shared_from_this();
    if (closed_) {
        co_return Error(ErrorCode::kConflict, "restart: the session has ended");
    }
    touch();
    if (!restart_waiter_) {
        restart_waiter_ = std::make_shared<Completion<Status>>(io_);
    }
    const auto waiter = restart_waiter_;
    begin_restart();
    co_return co_await Completion<Status>::wait(waiter);
}

Result<sandbox::Workspace> LiveSession::workspace() {
    if (closed_) {
        return Error(ErrorCode::kConflict, "files: the session has ended");
    }
    return workspace_;
}

}  // namespace cellkeep::session
