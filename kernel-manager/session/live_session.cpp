// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/live_session.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
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
      guard_(setup_.options.limits.consecutive_failures.value_or(0)),
      queue_(limits::kShellQueueMax, limits::kShellQueueBytesMax),
      wall_timer_(io),
      cpu_timer_(io),
      uncork_timer_(io),
      kill_timer_(io),
      artifacts_(ArtifactCollector::create(io, setup_.work_thread, workspace_)),
      created_at_(system_clock::now()),
      created_steady_(steady_clock::now()),
      activity_(created_steady_),
      clients_([this] { watch_life(); }),
      life_timer_(io),
      freezer_(io, freeze_after(), freezer_hooks()),
      usage_seen_at_(created_steady_) {}

LiveSession::~LiveSession() {
    close({Death::Kind::kRequested, 0});
}

boost::asio::awaitable<Status> LiveSession::start() {
    const auto self = shared_from_this();
    BOOST_OUTCOME_CO_TRY(write_files(std::exchange(setup_.options.files, {})));
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
    // Before the first message: a guard that was not begun lets nothing pass.
    guard_.hand_out(counters_or_nothing(), setup_.options.limits, steady_clock::now());
    BOOST_OUTCOME_CO_TRY(launch_kernel());
    Status ready = co_await Completion<Status>::wait(ready_);
    if (ready.has_value()) {
        guard_.hand_out(counters_or_nothing(), setup_.options.limits, steady_clock::now());
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
    info.frozen = freezer_.frozen();
    info.death = death_;
    info.limits = setup_.options.limits;
    if (setup_.proxy) {
        info.network = setup_.proxy->policy();
        info.traffic = setup_.proxy->traffic();
    }
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
    info.used = guard_.used();
    info.circuit = guard_.circuit(steady_clock::now());
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

Status LiveSession::check_execution(const ExecutionRequest& request) const {
    if (state_ == KernelState::kDead) {
        return Error(
            ErrorCode::kConflict,
            "execute: " + (death_ ? describe(*death_) : std::string("the interpreter is gone")),
            "Restart the session.");
    }
    const SessionLimits& session_limits = setup_.options.limits;
    if (const auto refused = refusal()) {
        return Error(ErrorCode::kLimitExceeded, "execute: " + refused->message, refused->hint);
    }
    if (request.timeout.has_value() && *request.timeout > session_limits.wall) {
        return Error(
            ErrorCode::kInvalidArgument,
            "timeout_ms: must be at most " + std::to_string(session_limits.wall.count()) +
                ", the session's limit wall_ms");
    }
    if (queue_.size() >= limits::kExecutionsQueuedMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "execute: " + std::to_string(limits::kExecutionsQueuedMax) +
                " requests wait in this session already");
    }
    for (const InputFile& file : request.files) {
        if (setup_.mounted.contains(file.path)) {
            // Not even from the same input: a copy in its place would take the mount away.
            return Error(
                ErrorCode::kInvalidArgument,
                "files/" + std::to_string(&file - request.files.data()) +
                    "/path: a read-only input is mounted there");
        }
    }
    return check_files(request.files, setup_.inputs.get());
}

void LiveSession::complete(TrackedExecution& tracked, ExecutionResult result) {
    const std::shared_ptr<Execution> execution = tracked.execution;
    result.reasoning = execution->order().reasoning;
    result.metadata = execution->order().metadata;
    // What never ran, and what somebody ended, says nothing about the code.
    const bool ran = execution->phase() == ExecutionPhase::kRunning;
    const bool ended_by_others = result.death.has_value() && !is_own_fault(*result.death);
    guard_.end_agent(
        ran && !ended_by_others ? vote_of(result.status) : CircuitVote::kNone, steady_clock::now());
    execution->finish(std::move(result));
    book_.settle();
}

ExecutionMetrics LiveSession::measure(const Current& current) const {
    using std::chrono::duration_cast;
    using std::chrono::microseconds;
    ExecutionMetrics metrics;
    metrics.wall = duration_cast<microseconds>(steady_clock::now() - current.started_at);
    metrics.queued = duration_cast<microseconds>(current.started_at - current.request.queued_at);
    // settle_limits() has asked for the CPU time; without a cgroup both are 0.
    metrics.cpu = std::max(microseconds{0}, current.cpu_at_end - current.cpu_at_start);
    if (const auto peak = sandbox_.memory_peak(); peak.has_value()) {
        metrics.memory_peak_bytes = peak.value();
        metrics.memory_peak_is_own = current.peak_is_own;
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
