// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/process_supervisor.hpp"

#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::session {

using protocol::Channel;
using protocol::Message;

ProcessSupervisor::ProcessSupervisor(
    boost::asio::io_context& io,
    Settings settings,
    const SessionLimits& limits,
    Sandbox sandbox,
    Listener listener,
    KeepAlive keep_alive)
    : settings_(std::move(settings)),
      limits_(limits),
      sandbox_(std::move(sandbox)),
      listener_(std::move(listener)),
      keep_alive_(std::move(keep_alive)),
      restart_policy_(limits::kRestartsMax, limits::kRestartWindow),
      messages_(settings_.name),
      handshake_(io),
      copy_(io),
      claimed_end_(io, keep_alive_),
      start_alarm_(io, keep_alive_),
      end_alarm_(io, keep_alive_) {}

// --- its start

Status ProcessSupervisor::launch() {
    sandbox_.wake();  // the others may stand still
    if (!settings_.first_inside || restarts() > 0) {
        end_.see_oom_kills(sandbox_.oom_kills());
    }
    handshake_.begin();
    end_.begin();
    // Until the new process says what it calls its session.
    messages_ = ServerMessages(settings_.name + "-" + std::to_string(restarts()));
    ++life_;
    BOOST_OUTCOME_TRY(process_, sandbox_.start(events()));
    listener_.on_started();
    start_alarm_.set_after(settings_.start_timeout, [this] {
        if (!info().has_value()) {
            kill({Death::Kind::kStartFailed, 0});
        }
    });
    return process_->send(handshake_.ask(messages_));
}

Interpreter::Events ProcessSupervisor::events() {
    // An event of the present process, whose owner lives until it has been handled.
    const auto enter = [this, life = life_] {
        auto owner = keep_alive_();
        return owner && process_ && life == life_ ? owner : nullptr;
    };
    return {
        .on_message =
            [this, enter](Message message) {
                if (const auto owner = enter()) {
                    listener_.on_message(std::move(message));
                }
            },
        .on_text =
            [this, enter](OutputStream stream, std::string_view text) {
                if (const auto owner = enter()) {
                    on_text(stream, text);
                }
            },
        .awaits_busy = [this, enter] { return enter() && listener_.awaits_busy(); },
        .on_link_closed =
            [this, enter](const Error& /*error*/) {
                if (const auto owner = enter()) {
                    // Nearly always the first sign of an exit whose report is on its way.
                    start_alarm_.set_after(limits::kLinkClosedGrace, [this] {
                        kill({Death::Kind::kLinkBroken, 0});
                    });
                }
            },
        .on_start_failed =
            [this, enter](const Error& error) {
                if (const auto owner = enter()) {
                    on_start_failed(error);
                }
            }};
}

void ProcessSupervisor::launch_under(const Message* parent) {
    launch_parent_ = parent == nullptr ? std::nullopt : std::optional(*parent);
    if (const Status launched = launch(); launched.has_error()) {
        fail_launch(launched);
    }
}

void ProcessSupervisor::on_start_failed(const Error& error) {
    if (end_.is_near()) {
        lose(end_.reason());  // it was to end anyway, and what follows is decided
    } else {
        fail_launch(error);
    }
}

boost::asio::awaitable<Status> ProcessSupervisor::wait_ready() {
    const auto owner = keep_alive_();
    co_return co_await handshake_.wait_ready();
}

boost::asio::awaitable<Status> ProcessSupervisor::adopt(nlohmann::json content) {
    const auto owner = keep_alive_();
    settings_.spare = false;
    if (content.is_null()) {
        co_return ok();
    }
    BOOST_OUTCOME_CO_TRY(process_->send(handshake_.ask_adoption(messages_, content)));
    co_return co_await handshake_.wait_adopted(settings_.start_timeout);
}

bool ProcessSupervisor::take(const Message& message) {
    switch (handshake_.take(message)) {
        case KernelHandshake::Taken::kDone:
            return true;
        case KernelHandshake::Taken::kReady:
            on_ready(message);
            return true;
        case KernelHandshake::Taken::kBroken:
            kill({Death::Kind::kStartFailed, 0});
            return true;
        case KernelHandshake::Taken::kNot:
            break;
    }
    const bool answers_probe = message.channel() == Channel::kIopub &&
                               message.header().msg_type == "status" && !end_probe_id_.empty() &&
                               message.parent().msg_id == end_probe_id_;
    if (answers_probe) {
        claimed_end_.settle();
    }
    return answers_probe || copy_.take(message);
}

void ProcessSupervisor::on_ready(const Message& kernel_info) {
    start_alarm_.cancel();
    launch_parent_.reset();
    change(KernelEvent::kReady);
    death_.reset();
    // One session name for everything that is said of this process: clients tell a restart by it.
    messages_ = ServerMessages(kernel_info.header().session);
    listener_.publish(messages_.status("idle", nullptr));
    handshake_.settle(ok());
    listener_.on_ready();
}

void ProcessSupervisor::on_text(OutputStream stream, std::string_view text) {
    if (info().has_value()) {
        listener_.on_text(stream, text);
    } else {
        end_.add_words(text);
    }
}

// --- what it can be asked

bool ProcessSupervisor::takes_requests() const {
    return process_ && info().has_value() && !closed_ && !draining_ && !end_.is_near();
}

Status ProcessSupervisor::interrupt() {
    // One that has ended by itself needs none.
    return end_.is_ended() ? Status(ok()) : process_->send_signal(SIGINT);
}

void ProcessSupervisor::watch_claimed_end(std::chrono::steady_clock::time_point deadline) {
    claimed_end_.watch(deadline, [this](ClaimedEnd::Step step) { prove_end(step); });
}

void ProcessSupervisor::prove_end(ClaimedEnd::Step step) {
    if (!process_ || end_.is_near()) {
        return;  // its end is certain
    }
    if (sandbox_.is_paused()) {
        // Nothing of it runs, nor could it answer.
        claimed_end_.settle();
        watch_claimed_end(std::chrono::steady_clock::now() + settings_.paused_claim_patience);
        return;
    }
    if (step == ClaimedEnd::Step::kAsk) {
        if (listener_.running() != nullptr) {
            return;  // that is the question
        }
        sandbox_.wake();
        const Message probe =
            messages_.request(Channel::kShell, "kernel_info_request", nlohmann::json::object());
        end_probe_id_ = probe.header().msg_id;
        (void)process_->send(probe);  // Ignored: a link that takes nothing gets no answer either.
    } else if (step == ClaimedEnd::Step::kInterrupt) {
        process_->resume_reading();
        (void)process_->send_signal(SIGINT);  // Ignored: it fails only if the process is gone.
    } else {
        kill({Death::Kind::kWallTimeout, 0});
    }
}

// --- its end

void ProcessSupervisor::kill(const Death& why) {
    if (process_ && end_.kill(why) && !halting_) {
        send_kill();
    }
}

void ProcessSupervisor::begin_restart() {
    const Death restart{Death::Kind::kRequested, 0};
    restart_policy_.forget_deaths();
    if (process_) {
        kill(restart);
        // What was asked before ends here; what is asked from now on waits for the fresh one.
        listener_.fail_waiting(restart, describe_end(restart, Aftermath::kRestarted));
    } else if (dead_) {
        lose(restart);
    }
}

boost::asio::awaitable<Status> ProcessSupervisor::restart() {
    const auto owner = keep_alive_();
    if (closed_) {
        co_return session_ended();
    }
    auto restarted = handshake_.wait_restarted();  // before what may settle it at once
    begin_restart();
    co_return co_await std::move(restarted);
}

bool ProcessSupervisor::is_of(sandbox::WorkerId worker) const {
    return process_ && process_->id() == worker && !end_.is_ended();
}

void ProcessSupervisor::on_exit(const sandbox::WorkerExit& exit, Cut cut) {
    end_.on_exit(exit, sandbox_.oom_kills(), cut);
    start_alarm_.cancel();
    if (!halting_) {
        sweep();
    }
}

void ProcessSupervisor::await_end() {
    end_alarm_.set_after(settings_.tell_patience, [this] {
        tell_end();
        if (closed_ || !process_) {
            return;
        }
        end_alarm_.set_after(settings_.end_patience, [this] { give_up_on_end(); });
    });
}

void ProcessSupervisor::drain() {
    const auto process = process_;  // handling what it says may lose it
    draining_ = true;
    process->drain_all();
    draining_ = false;
}

void ProcessSupervisor::tell_end() {
    if (end_.is_ended()) {  // or something inside could still be talking
        drain();
    }
    const Message* running = listener_.running();
    if (closed_ || !process_ || running == nullptr) {
        return;
    }
    const Death death = end_.reason();
    const bool restarts = may_restart(death);
    end_.inform(*running, restarts);
    const std::string text = describe_end(death, restarts ? after_restart() : Aftermath::kLeftDead);
    listener_.fail_running(death, text);
    if (death.kind != Death::Kind::kRequested) {
        // Clients that ask from now on wait for the fresh interpreter.
        listener_.fail_waiting(death, text);
    }
}

void ProcessSupervisor::give_up_on_end() {
    // Fails if pid 1 does not take it: then the next start does, too.
    (void)sandbox_.begin_sweep();
    end_.give_up();
    lose(end_.reason());
}

void ProcessSupervisor::on_swept() {
    if (!end_.is_ended() || !process_ || halting_) {
        return;  // of a sweep whose end no process waits for any more
    }
    drain();
    if (closed_ || !process_) {
        return;
    }
    lose(end_.reason());
}

void ProcessSupervisor::on_sandbox_died() {
    lose(end_.on_sandbox_died());
}

void ProcessSupervisor::end(const Death& reason) {
    lose(reason);
    handshake_.settle(Error(ErrorCode::kCancelled, describe(reason)));
}

void ProcessSupervisor::lose(const Death& death) {
    const auto owner = keep_alive_();  // an answer may let go of the session
    process_.reset();
    halting_ = false;
    claimed_end_.settle();
    ProcessEnd::Settled settled = end_.complete();
    std::optional<Message> parent = std::move(settled.informed);
    start_alarm_.cancel();
    end_alarm_.cancel();
    change(KernelEvent::kDied);
    death_ = death;
    Loss loss{.death = death, .text = {}, .restarts = false, .informed = parent.has_value()};
    loss.restarts =
        !closed_ && (settled.restarts.has_value() ? *settled.restarts : may_restart(death));
    loss.text = describe_end(
        death,
        closed_         ? Aftermath::kEnded
        : loss.restarts ? after_restart()
                        : Aftermath::kLeftDead);
    if (auto running = listener_.on_lost(loss)) {
        parent = std::move(running);
    }
    handshake_.fail_adoption(loss.text);
    copy_.fail(loss.text);
    if (closed_) {
        return;
    }
    const Message* under = parent.has_value() ? &*parent : nullptr;
    if (loss.restarts) {
        restart_process(under, death);
        return;
    }
    stay_dead(
        Error(
            death.kind == Death::Kind::kStartFailed ? ErrorCode::kTimeout : ErrorCode::kUnavailable,
            describe(death) + (end_.last_words().empty() ? "" : " It said: " + end_.last_words())),
        under,
        death);
}

void ProcessSupervisor::restart_process(const Message* parent, const Death& death) {
    handshake_.fail_process(Error(ErrorCode::kUnavailable, describe(death)));
    restart_policy_.count_restart();
    change(KernelEvent::kRestart);
    if (death.kind != Death::Kind::kRequested) {
        // For JupyterLab "restarting" is a kernel that died by itself, and it tells the person so.
        // Of a restart that was asked for, the new process's "starting" is news enough.
        listener_.publish(messages_.status(
            "restarting", parent, to_string(death), describe_end(death, after_restart())));
    }
    if (!sandbox_.postpones_launch()) {
        launch_under(parent);
    }
}

void ProcessSupervisor::fail_launch(const Status& launched) {
    const Death failed{Death::Kind::kStartFailed, 0};
    const auto parent = std::exchange(launch_parent_, std::nullopt);
    process_.reset();
    start_alarm_.cancel();
    change(KernelEvent::kDied);
    death_ = failed;
    listener_.fail_waiting(failed, describe_end(failed, Aftermath::kLeftDead));
    stay_dead(launched, parent.has_value() ? &*parent : nullptr, failed);
}

void ProcessSupervisor::stay_dead(const Status& status, const Message* parent, const Death& death) {
    listener_.publish(messages_.status(
        "dead", parent, to_string(death), describe_end(death, Aftermath::kLeftDead)));
    handshake_.settle(status);
    listener_.on_left_dead(death);
}

void ProcessSupervisor::change(KernelEvent event) {
    dead_ = event == KernelEvent::kDied;
    listener_.change(event);
}

bool ProcessSupervisor::may_restart(const Death& death) {
    return restart_policy_.allows(
        death, settings_.spare, info().has_value(), std::chrono::steady_clock::now());
}

}  // namespace cellkeep::session
