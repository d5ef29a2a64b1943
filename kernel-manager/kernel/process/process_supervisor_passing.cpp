// SPDX-License-Identifier: Apache-2.0
//
// How a kernel's process makes way for another one, and how it passes to another program in the
// server's process.
#include "kernel-manager/kernel/process/process_supervisor.hpp"

#include <csignal>
#include <utility>

namespace cellkeep::session {

// --- for another process

void ProcessSupervisor::send_kill() {
    sandbox_.wake();  // what stands still does not die, and pid 1 could not say so
    // The interpreter alone; what it started is swept when its exit is reported. Fails if it has
    // ended already: then that is on its way.
    (void)process_->send_signal(SIGKILL);
    await_end();
}

void ProcessSupervisor::sweep() {
    // What the interpreter left running goes first: it holds the same link and could talk for ever.
    // How long that takes is up to the guest, so no call waits here.
    sandbox_.wake();  // the sweep thaws
    if (sandbox_.begin_sweep().has_error()) {
        on_swept();  // the next start says what is wrong
        return;
    }
    await_end();
}

boost::asio::awaitable<Status> ProcessSupervisor::replace() {
    const auto owner = keep_alive_();
    if (closed_) {
        co_return session_ended();
    }
    auto replaced = handshake_.wait_restarted();  // before what may settle it at once
    begin_replacement();
    co_return co_await std::move(replaced);
}

void ProcessSupervisor::begin_replacement() {
    // What an answer to a running request needs is known when the exit has been reported.
    const bool rests = process_ && takes_requests() && listener_.running() == nullptr;
    if (!rests || !sandbox_.halt) {
        begin_restart();
        return;
    }
    const Death replaced{Death::Kind::kRequested, 0};
    restart_policy_.forget_deaths();
    (void)end_.kill(replaced);  // it has not ended
    sandbox_.wake();            // what stands still does not stop
    halting_ = true;
    const auto call = [this, life = life_](bool halted) {
        if (const auto owner = keep_alive_()) {
            on_halted(life, halted);
        }
    };
    if (!sandbox_.halt(call)) {
        on_halted(life_, false);
    }
    listener_.fail_waiting(replaced, describe_end(replaced, Aftermath::kRestarted));
}

void ProcessSupervisor::on_halted(std::uint64_t life, bool halted) {
    if (life != life_ || !halting_) {
        return;  // of a process that is lost
    }
    halting_ = false;
    if (halted) {
        drain();
        if (process_ && !closed_) {
            lose(end_.reason());
        }
    } else if (end_.is_ended()) {
        sweep();
    } else {
        send_kill();
    }
}

// --- to another program

bool ProcessSupervisor::is_at_rest() const {
    return is_left_dead() || is_live_at_rest();
}

bool ProcessSupervisor::is_live_at_rest() const {
    return takes_requests() && !is_adopting() && !is_copying() && !claimed_end_.is_asking() &&
           process_->is_at_rest();
}

PassedProcess ProcessSupervisor::pass_on() {
    PassedProcess passed;
    if (process_) {
        passed.interpreter = process_->pass_on();
    } else {
        passed.death = death_;
    }
    passed.session = messages_.session();
    passed.info = info().value_or(nlohmann::json());
    passed.restarts = restart_policy_.restarts();
    passed.deaths = restart_policy_.deaths();
    passed.oom_kills = end_.oom_kills_seen();
    passed.claimed_end = claimed_end_.deadline();
    process_.reset();
    claimed_end_.settle();
    start_alarm_.cancel();
    end_alarm_.cancel();
    closed_ = true;
    return passed;
}

Status ProcessSupervisor::go_on(
    PassedProcess passed,
    const std::function<
        Result<std::unique_ptr<Interpreter>>(PassedInterpreter, Interpreter::Events)>& connect) {
    end_.begin();
    end_.see_oom_kills(passed.oom_kills);
    restart_policy_.go_on(passed.restarts, std::move(passed.deaths));
    messages_ = ServerMessages(std::move(passed.session));
    ++life_;
    if (!passed.death) {
        BOOST_OUTCOME_TRY(process_, connect(std::move(passed.interpreter), events()));
    }
    death_ = passed.death;
    if (!passed.info.is_null()) {
        handshake_.go_on(std::move(passed.info));
    }
    change(death_ ? KernelEvent::kDied : KernelEvent::kReady);
    if (passed.claimed_end) {
        watch_claimed_end(*passed.claimed_end);
    }
    return ok();
}

}  // namespace cellkeep::session
