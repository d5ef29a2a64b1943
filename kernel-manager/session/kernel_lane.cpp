// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/kernel_lane.hpp"

#include "kernel-manager/session/session_options.hpp"
#include "protocol/internal_request.hpp"
#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::session {

using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;

KernelLane::KernelLane(
    LaneHost& host, SessionCommons& shared, KernelSpec spec, sandbox::WorkerGroup group)
    : host_(host),
      shared_(shared),
      spec_(std::move(spec)),
      group_(group),
      messages_("cellkeep-" + shared.setup.id),
      start_timer_(shared.io),
      restart_budget_(limits::kRestartsMax, limits::kRestartWindow),
      guard_(shared.account),
      queue_(limits::kShellQueueMax, limits::kShellQueueBytesMax, &shared.queued_bytes),
      wall_timer_(shared.io),
      cpu_timer_(shared.io),
      uncork_timer_(shared.io),
      kill_timer_(shared.io),
      claimed_end_(shared.io),
      artifacts_(ArtifactCollector::create(shared.io, shared.setup.work_thread, shared.workspace)) {
    guard_.listen(session_limits(), steady_clock::now());
}

boost::asio::awaitable<Status> KernelLane::wait_ready() {
    const auto self = hold();
    Status ready = co_await Completion<Status>::wait(ready_);
    if (ready.has_value()) {
        guard_.listen(session_limits(), steady_clock::now());
    }
    co_return ready;
}

boost::asio::awaitable<Status> KernelLane::adopt() {
    const auto self = hold();
    guard_ = RunGuard(shared_.account);
    guard_.listen(session_limits(), steady_clock::now());
    const SessionOptions& options = shared_.setup.options;
    if (options.env.empty() && options.working_directory.empty()) {
        co_return ok();
    }
    const Message request = messages_.request(
        Channel::kControl,
        protocol::kAdoptRequest,
        {{"env", options.env}, {"working_directory", prepare_working_directory()}});
    adopt_request_id_ = request.header().msg_id;
    adopted_ = std::make_shared<Completion<Status>>(shared_.io);
    const auto adopted = adopted_;
    start_timer_.expires_after(shared_.setup.start_timeout);
    start_timer_.async_wait([adopted](const boost::system::error_code& error) {
        if (!error) {
            adopted->set(Error(ErrorCode::kTimeout, "hand out: the spare does not answer"));
        }
    });
    BOOST_OUTCOME_CO_TRY(process_->send(request));
    Status done = co_await Completion<Status>::wait(adopted);
    adopted_.reset();
    start_timer_.cancel();
    co_return done;
}

boost::asio::awaitable<Status> KernelLane::restart() {
    const auto self = hold();
    if (!restart_waiter_) {
        restart_waiter_ = std::make_shared<Completion<Status>>(shared_.io);
    }
    const auto waiter = restart_waiter_;
    begin_restart();
    co_return co_await Completion<Status>::wait(waiter);
}

void KernelLane::end(const Death& reason) {
    lose_kernel(reason);
    settle_ready(Error(ErrorCode::kCancelled, describe(reason)));
    const std::string text = describe_end(reason, Aftermath::kEnded);
    for (auto& [request, origin] : std::exchange(waiting_for_info_, {})) {
        publish(messages_.status("busy", &request));
        origin->deliver(messages_.error_reply(request, "SessionClosed", text));
        publish(messages_.status("idle", &request));
    }
    publish(messages_.status("dead", nullptr, to_string(reason), text));
    mark_dead();
}

Status KernelLane::check_alive() const {
    if (state_ != KernelState::kDead) {
        return ok();
    }
    return Error(
        ErrorCode::kConflict,
        "execute: " + (death_ ? describe(*death_) : std::string("the interpreter is gone")),
        is_main() ? "Restart the session." : "Restart the session's " + spec_.language + ".");
}

bool KernelLane::is_at_work() const {
    return !process_ || state_ != KernelState::kIdle || is_busy() || ended_.has_value() ||
           kill_reason_.has_value() || adopted_ || artifacts_->busy() || debug_requests_.size() > 0;
}

void KernelLane::on_sandbox_died() {
    lose_kernel(kill_reason_.value_or(Death{Death::Kind::kSandboxDied, 0}));
}

void KernelLane::resume_reading() {
    if (process_) {
        process_->resume_reading();
    }
}

}  // namespace cellkeep::session
