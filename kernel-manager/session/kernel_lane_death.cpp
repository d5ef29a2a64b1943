// SPDX-License-Identifier: Apache-2.0
//
// Death and restart of a session's interpreter, and what is told of it.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/session/kernel_lane.hpp"

#include <csignal>
#include <utility>

namespace cellkeep::session {

using protocol::Message;

namespace {

/// How long the cell of an interpreter that is ending waits with its answer, because what comes
/// last belongs to it, and the next interpreter is then mostly there.
constexpr std::chrono::milliseconds kTellPatience{250};
/// How long a killed interpreter, or what one has left running, may take to go.
constexpr std::chrono::seconds kEndPatience{10};

}  // namespace

void KernelLane::kill_kernel(Death why) {
    if (!process_) {
        return;
    }
    if (ended_.has_value()) {
        // It has died of something else, and only what is to come can still be asked for.
        if (why.kind == Death::Kind::kRequested) {
            ended_ = why;
            restarts_after_.reset();
        }
        return;
    }
    if (!kill_reason_.has_value()) {
        kill_reason_ = why;
    }
    host_.wake();  // what stands still does not die, and pid 1 could not say so
    // The interpreter alone; what it started is swept when its exit is reported. Fails if it has
    // ended already: then that is on its way.
    (void)process_->send_signal(SIGKILL);
    await_end();
}

void KernelLane::begin_restart() {
    restart_budget_.reset();
    if (process_) {
        kill_kernel({Death::Kind::kRequested, 0});
        // What was asked before ends here; what is asked from now on waits for the fresh one.
        const Death restart{Death::Kind::kRequested, 0};
        fail_waiting(restart, describe_end(restart, Aftermath::kRestarted));
    } else if (state_ == KernelState::kDead) {
        lose_kernel({Death::Kind::kRequested, 0});
    }
}

void KernelLane::on_worker_exit(const sandbox::WorkerExit& exit) {
    if (!process_ || process_->id() != exit.id || ended_.has_value()) {
        return;  // an earlier interpreter
    }
    ended_ = classify(exit);
    // Of a run that is over, whatever they say.
    for (auto* timer : {&start_timer_, &wall_timer_, &cpu_timer_, &uncork_timer_}) {
        timer->cancel();
    }
    // What the interpreter left running goes first: it holds the same link and could talk for ever.
    // How long that takes is up to the guest, so nobody waits here.
    host_.wake();  // the sweep thaws
    if (host_.begin_sweep(*this).has_error()) {
        on_swept();  // the next start says what is wrong
        return;
    }
    await_end();
}

void KernelLane::await_end() {
    kill_timer_.expires_after(kTellPatience);
    kill_timer_.async_wait(
        [weak = weak(), worker = process_->id()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (error || !self || !self->process_ || self->process_->id() != worker) {
                return;
            }
            self->tell_end();
            if (self->shared_.closed || !self->process_) {
                return;
            }
            self->kill_timer_.expires_after(kEndPatience);
            self->kill_timer_.async_wait([weak, worker](const boost::system::error_code& late) {
                const auto still = weak.lock();
                if (!late && still && still->process_ && still->process_->id() == worker) {
                    still->give_up_on_end();
                }
            });
        });
}

Death KernelLane::coming_death() const {
    return ended_.has_value() ? *ended_
                              : kill_reason_.value_or(Death{Death::Kind::kSandboxDied, 0});
}

void KernelLane::tell_end() {
    if (ended_.has_value()) {  // or somebody could still be talking
        draining_ = true;
        process_->drain_all();
        draining_ = false;
    }
    if (shared_.closed || !process_ || !current_.has_value()) {
        return;
    }
    const Death death = coming_death();
    restarts_after_ = may_restart(death);
    told_ = current_->request.message;
    const std::string text =
        describe_end(death, *restarts_after_ ? Aftermath::kRestarted : Aftermath::kLeftDead);
    fail_current(death, text);
    if (death.kind != Death::Kind::kRequested) {
        fail_waiting(death, text);  // who asks from now on knows, and waits for the fresh one
    }
}

void KernelLane::give_up_on_end() {
    // Fails if pid 1 does not take it: then the next start does, too.
    (void)host_.begin_sweep(*this);
    restarts_after_ = false;
    lose_kernel(coming_death());
}

void KernelLane::on_swept() {
    if (!ended_.has_value() || !process_) {
        return;  // of a sweep that nobody waits for any more
    }
    draining_ = true;
    process_->drain_all();
    draining_ = false;
    if (shared_.closed || !process_) {
        return;
    }
    lose_kernel(coming_death());  // a copy: ended_ goes with the process
}

Death KernelLane::classify(const sandbox::WorkerExit& exit) {
    const auto usage = shared_.sandbox.usage();
    const std::uint64_t oom_kills = usage.has_value() ? usage.value().oom_kills : 0;
    const bool out_of_memory = oom_kills > std::exchange(oom_kills_seen_, oom_kills);
    if (kill_reason_.has_value()) {
        return *kill_reason_;
    }
    if (!exit.failure.empty()) {
        stderr_tail_ = exit.failure;
        return {Death::Kind::kStartFailed, 0};
    }
    // An interpreter that the deadline's interrupt ended, before it came to killing.
    if (current_.has_value() && is_limit(current_->cut)) {
        return {death_after(current_->cut), 0};
    }
    if (exit.signaled && exit.status == SIGKILL && out_of_memory) {
        return {Death::Kind::kOom, 0};
    }
    return {exit.signaled ? Death::Kind::kSignal : Death::Kind::kExited, exit.status};
}

void KernelLane::lose_kernel(const Death& death) {
    const auto self = hold();  // an answer may let go of the session
    process_.reset();
    ended_.reset();
    claimed_end_.settle();
    const std::optional<bool> decided = std::exchange(restarts_after_, std::nullopt);
    std::optional<Message> parent = std::exchange(told_, std::nullopt);
    const bool told = parent.has_value();
    for (auto* timer : {&start_timer_, &wall_timer_, &cpu_timer_, &uncork_timer_, &kill_timer_}) {
        timer->cancel();
    }
    ignore_congestion_ = false;
    change(KernelEvent::kDied);
    death_ = death;
    const bool restarts = !shared_.closed && (decided.has_value() ? *decided : may_restart(death));
    const std::string text = describe_end(
        death,
        shared_.closed ? Aftermath::kEnded
        : restarts     ? Aftermath::kRestarted
                       : Aftermath::kLeftDead);
    fail_debug_requests(text);
    if (current_.has_value()) {
        parent = current_->request.message;
        fail_current(death, text);
    } else if (is_news(death) && !shared_.setup.spare && !told) {
        publish(messages_.stream("stderr", text + "\n", last_parent_header_));
    }
    if (shared_.closed || !restarts || (death.kind != Death::Kind::kRequested && !told)) {
        fail_waiting(death, text);
    }
    if (adopted_) {
        adopted_->set(Error(ErrorCode::kUnavailable, text));
    }
    if (shared_.closed) {
        return;
    }
    const Message* under = parent.has_value() ? &*parent : nullptr;
    if (restarts) {
        restart_kernel(under, death);
        return;
    }
    stay_dead(
        Error(
            death.kind == Death::Kind::kStartFailed ? ErrorCode::kTimeout : ErrorCode::kUnavailable,
            describe(death) + (stderr_tail_.empty() ? "" : " It said: " + stderr_tail_)),
        under,
        death);
}

void KernelLane::fail_current(const Death& death, const std::string& text) {
    settle_limits(death);
    const bool sent = current_->sent;
    if (current_->writing) {
        current_->writing->cancel();
    }
    PendingRequest request = std::move(current_->request);
    const ExecutionMetrics metrics = measure(*current_);
    const std::optional<LimitHit> hit = std::move(current_->hit);
    const bool replied = current_->replied;
    current_.reset();
    // Under the cell that it happened to. Whoever asked for the end needs no alarm.
    const bool news = is_news(death);
    if (news && replied) {
        publish(messages_.stream("stderr", text + "\n", request.message.header_json()));
    } else if (news) {
        publish(messages_.error(request.message, "KernelDied", text));
    }
    if (request.execution) {
        ExecutionResult result = request.execution->recorder.finish_dead(death);
        result.metrics = metrics;
        if (hit.has_value()) {
            apply(*hit, result);
        }
        if (sent) {
            complete_with_artifacts(request.execution, std::move(result));
        } else {
            host_.complete(*request.execution, std::move(result));
        }
    } else if (!replied) {
        fail_request(request, death, text);
    }
    publish(messages_.status("idle", &request.message));
}

void KernelLane::fail_waiting(const Death& death, const std::string& text) {
    for (PendingRequest& request : queue_.take_all()) {
        publish(messages_.status("busy", &request.message));
        fail_request(request, death, text);
        publish(messages_.status("idle", &request.message));
    }
}

void KernelLane::fail_request(
    PendingRequest& request, const Death& death, const std::string& text) {
    if (request.execution) {
        host_.complete(*request.execution, request.execution->recorder.finish_dead(death));
        return;
    }
    // At once: a session that is being closed lets go of its clients right after this.
    if (find_reply_type(request.message.header().msg_type).has_value()) {
        request.origin->deliver(messages_.error_reply(request.message, "KernelDied", text));
    }
}

void KernelLane::restart_kernel(const Message* parent, const Death& death) {
    if (ready_) {
        ready_->set(Error(ErrorCode::kUnavailable, describe(death)));
    }
    ++restarts_;
    change(KernelEvent::kRestart);
    if (death.kind != Death::Kind::kRequested) {
        // For JupyterLab "restarting" is a kernel that died by itself, and it tells the person so.
        // Of a restart that somebody asked for, the new process's "starting" is news enough.
        publish(messages_.status(
            "restarting", parent, to_string(death), describe_end(death, Aftermath::kRestarted)));
    }
    if (host_.postpones_launch(*this)) {
        return;
    }
    if (const Status launched = launch(); launched.has_error()) {
        fail_launch(launched, parent);
    }
}

void KernelLane::launch_or_die() {
    if (const Status launched = launch(); launched.has_error()) {
        fail_launch(launched, nullptr);
    }
}

void KernelLane::fail_launch(const Status& launched, const Message* parent) {
    const Death failed{Death::Kind::kStartFailed, 0};
    process_.reset();
    change(KernelEvent::kDied);
    death_ = failed;
    fail_waiting(failed, describe_end(failed, Aftermath::kLeftDead));
    stay_dead(launched, parent, failed);
}

void KernelLane::stay_dead(const Status& status, const Message* parent, const Death& death) {
    publish(messages_.status(
        "dead", parent, to_string(death), describe_end(death, Aftermath::kLeftDead)));
    settle_ready(status);
    answer_waiting_for_info();
    host_.on_left_dead(death);
}

std::string KernelLane::describe_end(const Death& death, Aftermath aftermath) const {
    return session::describe(death, session_limits(), aftermath);
}

bool KernelLane::may_restart(const Death& death) {
    if (shared_.setup.spare) {
        return false;  // nobody's: another one is made
    }
    if (death.kind == Death::Kind::kRequested) {
        return true;
    }
    // One that has never worked will not work the next time; a crash loop must end.
    if (!kernel_info_.has_value() || death.kind == Death::Kind::kSandboxDied) {
        return false;
    }
    return restart_budget_.take(std::chrono::steady_clock::now());
}

void KernelLane::settle_ready(const Status& status) {
    if (ready_) {
        ready_->set(status);
    }
    if (const auto waiter = std::exchange(restart_waiter_, nullptr)) {
        waiter->set(status);
    }
}

}  // namespace cellkeep::session
