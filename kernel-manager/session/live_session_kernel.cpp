// SPDX-License-Identifier: Apache-2.0
//
// Birth, death and restart of a session's interpreter, and what it says while it lives.
#include "kernel-manager/session/live_session.hpp"
#include "protocol/limits.hpp"
#include "sandbox/policy.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <csignal>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;

namespace {

/// How long leftovers of a killed interpreter may take to go.
constexpr std::chrono::milliseconds kKillPatience{250};
/// How long pid 1 may take to report the exit of an interpreter that was killed.
constexpr std::chrono::milliseconds kExitReportPatience{5000};
constexpr std::size_t kStderrTailBytes = 4096;

std::vector<std::string> make_environment(
    const KernelSpec& spec,
    const std::map<std::string, std::string>& own,
    const std::string& session_id) {
    std::vector<std::string> env;
    for (const std::string& entry : spec.env) {
        if (!own.contains(entry.substr(0, entry.find('=')))) {
            env.push_back(entry);
        }
    }
    for (const auto& [name, value] : own) {
        env.push_back(name + "=" + value);
    }
    env.push_back("CELLKEEP_SESSION_ID=" + session_id);
    return env;
}

}  // namespace

void LiveSession::change(KernelEvent event) {
    if (const auto next = next_state(state_, event)) {
        state_ = *next;
    }
}

Status LiveSession::launch_kernel() {
    const std::weak_ptr<LiveSession> weak = weak_from_this();
    KernelProcess::Events events{
        .on_message =
            [weak](Message message) {
                if (const auto self = weak.lock()) {
                    self->on_kernel_message(std::move(message));
                }
            },
        .on_text =
            [weak](OutputStream stream, std::string_view text) {
                if (const auto self = weak.lock()) {
                    self->on_kernel_text(stream, text);
                }
            },
        .on_link_closed =
            [weak](const Error& error) {
                if (const auto self = weak.lock()) {
                    self->on_link_closed(error);
                }
            }};
    kernel_info_.reset();
    kill_reason_.reset();
    stderr_tail_.clear();
    last_parent_header_ = "{}";
    // Until the new process says what it calls its session.
    messages_ = ServerMessages("cellkeep-" + setup_.id + "-" + std::to_string(restarts_));
    ready_ = std::make_shared<Completion<Status>>(io_);
    BOOST_OUTCOME_TRY(
        process_,
        KernelProcess::start(
            io_,
            sandbox_,
            setup_.spec.argv,
            make_environment(setup_.spec, setup_.options.env, setup_.id),
            prepare_working_directory(),
            std::move(events)));

    start_timer_.expires_after(setup_.start_timeout);
    start_timer_.async_wait(
        [weak, worker = process_->id()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->process_ && self->process_->id() == worker &&
                !self->kernel_info_.has_value()) {
                self->kill_kernel({Death::Kind::kStartFailed, 0});
            }
        });
    const Message probe =
        messages_.request(Channel::kShell, "kernel_info_request", nlohmann::json::object());
    ready_probe_id_ = probe.header().msg_id;
    return process_->send(probe);
}

void LiveSession::on_ready(const Message& kernel_info) {
    // Kept and repeated to clients, so the guest may not choose its size.
    if (kernel_info.content_json().size() > limits::kKernelInfoBytesMax) {
        kill_kernel({Death::Kind::kStartFailed, 0});
        return;
    }
    auto content = kernel_info.parse_content();
    if (content.has_error()) {
        kill_kernel({Death::Kind::kStartFailed, 0});
        return;
    }
    kernel_info_ = std::move(content).value();
    start_timer_.cancel();
    change(KernelEvent::kReady);
    death_.reset();
    // One session name for everything that is said of this process: clients tell a restart by it.
    messages_ = ServerMessages(kernel_info.header().session);
    publish(messages_.status("idle", nullptr));
    settle_ready(ok());
    answer_waiting_for_info();
    dispatch_next();
}

void LiveSession::on_kernel_message(Message message) {
    switch (message.channel()) {
        case Channel::kIopub:
            on_iopub(std::move(message));
            return;
        case Channel::kShell:
            if (message.parent().msg_id == ready_probe_id_ && !kernel_info_.has_value()) {
                on_ready(message);
            } else {
                on_reply(message);
            }
            return;
        case Channel::kStdin:
            on_input_request(message);
            return;
        case Channel::kControl:
            if (adopted_ && message.parent().msg_id == adopt_request_id_) {
                const auto content = message.parse_content();
                const bool done =
                    content.has_value() && content.value().value("status", json("")) == "ok";
                adopted_->set(
                    done ? Status(ok())
                         : Status(Error(ErrorCode::kSystem, "the kernel could not be handed out")));
            } else {
                debug_requests_.answer(message);
            }
            return;
    }
}

void LiveSession::on_iopub(Message message) {
    const bool is_status = message.header().msg_type == "status";
    if (is_status && message.parent().msg_id == ready_probe_id_) {
        return;  // our own first question is nobody's news
    }
    bool idle = false;
    if (is_status && current_.has_value() &&
        message.parent().msg_id == current_->request.message.header().msg_id) {
        const auto content = message.parse_content();
        const auto said = content.has_value()
                              ? content.value().value("execution_state", nlohmann::json())
                              : nlohmann::json();
        idle = said == "idle";
        if (said == "busy" && !std::exchange(current_->begun, true) &&
            current_->interrupt_at_busy && process_) {
            (void)process_->send_signal(SIGINT);  // fails only if the process is gone
        }
    }
    if (idle && process_) {
        // What C code and finished subprocesses printed is in the pipes by now: it belongs before
        // the idle.
        process_->drain_pipes();
    }
    const bool ends_debug_request =
        is_status && !idle && message.parent().msg_type == "debug_request";
    publish(std::move(message));
    if (idle && current_.has_value()) {
        finish_current();
    } else if (ends_debug_request) {
        repeat_busy();
    }
}

void LiveSession::publish(Message message) {
    const OutputEntry entry = journal_.append(std::move(message));
    activity_.note_output(
        entry.message.parent().msg_type, is_tracked_running(), std::chrono::steady_clock::now());
    if (current_.has_value() && current_->request.execution &&
        entry.message.parent().msg_id == current_->request.message.header().msg_id) {
        current_->request.execution->recorder.on_output(entry.message, &workspace_);
    }
    bool congested = false;
    for (OutputObserver* observer : std::vector(observers_)) {
        observer->on_output(entry);
        congested = congested || observer->congested();
    }
    if (congested && !ignore_congestion_ && !draining_ && process_) {
        process_->pause_reading();
    }
}

void LiveSession::on_kernel_text(OutputStream stream, std::string_view text) {
    if (!kernel_info_.has_value()) {
        stderr_tail_.append(text);
        if (stderr_tail_.size() > kStderrTailBytes) {
            stderr_tail_.erase(0, stderr_tail_.size() - kStderrTailBytes);
        }
        return;
    }
    publish(messages_.stream(
        stream == OutputStream::kStderr ? "stderr" : "stdout", text, last_parent_header_));
}

void LiveSession::on_link_closed(const Error& /*error*/) {
    // Nearly always the first sign of an exit whose report is on its way from pid 1.
    if (!process_) {
        return;
    }
    start_timer_.expires_after(limits::kLinkClosedGrace);
    start_timer_.async_wait(
        [weak = weak_from_this(), worker = process_->id()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->process_ && self->process_->id() == worker) {
                self->kill_kernel({Death::Kind::kLinkBroken, 0});
            }
        });
}

void LiveSession::watch_sandbox() {
    sandbox_events_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [weak = weak_from_this()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (error || !self || self->closed_) {
                return;
            }
            self->take_sandbox_events();
            if (!self->closed_ && self->sandbox_events_.is_open()) {
                self->watch_sandbox();
            }
        });
}

void LiveSession::take_sandbox_events() {
    while (!closed_) {
        auto event = sandbox_.next_event();
        const bool died =
            event.has_error() || (event.value().has_value() &&
                                  event.value()->kind == sandbox::SandboxEvent::Kind::kSandboxDied);
        if (died) {
            boost::system::error_code ignored;  // our own duplicate descriptor
            sandbox_events_.close(ignored);
            lose_kernel(kill_reason_.value_or(Death{Death::Kind::kSandboxDied, 0}));
            return;
        }
        if (!event.value().has_value()) {
            return;
        }
        on_kernel_exit(event.value()->worker);
    }
}

void LiveSession::kill_kernel(Death why) {
    if (!process_) {
        return;
    }
    if (!kill_reason_.has_value()) {
        kill_reason_ = why;
    }
    // The interpreter alone and without waiting; what it started is swept when its exit is
    // reported.
    if (process_->send_signal(SIGKILL).has_error()) {
        (void)sandbox_.kill_workers(kKillPatience);
    }
    kill_timer_.expires_after(kExitReportPatience);
    kill_timer_.async_wait(
        [weak = weak_from_this(), worker = process_->id()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->process_ && self->process_->id() == worker) {
                self->lose_kernel({Death::Kind::kSandboxDied, 0});
            }
        });
}

void LiveSession::begin_restart() {
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

void LiveSession::on_kernel_exit(const sandbox::WorkerExit& exit) {
    if (!process_ || process_->id() != exit.id) {
        return;  // an earlier interpreter
    }
    // What the interpreter left running goes first: it holds the same link and could talk for ever.
    // A failure to see the last of them go leaves them to the next kill or to the sandbox's end.
    (void)sandbox_.kill_workers(kKillPatience);
    draining_ = true;
    process_->drain_all();
    draining_ = false;
    if (closed_ || !process_) {
        return;
    }
    lose_kernel(classify(exit));
}

Death LiveSession::classify(const sandbox::WorkerExit& exit) {
    const auto usage = sandbox_.usage();
    const std::uint64_t oom_kills = usage.has_value() ? usage.value().oom_kills : 0;
    const bool out_of_memory = oom_kills > std::exchange(oom_kills_seen_, oom_kills);
    if (kill_reason_.has_value()) {
        return *kill_reason_;
    }
    // An interpreter that the deadline's interrupt ended, before it came to killing.
    if (current_.has_value() && current_->cut == Cut::kWallTimeout) {
        return {Death::Kind::kWallTimeout, 0};
    }
    if (current_.has_value() && current_->cut == Cut::kCpuTimeout) {
        return {Death::Kind::kCpuTimeout, 0};
    }
    if (exit.signaled && exit.status == SIGKILL && out_of_memory) {
        return {Death::Kind::kOom, 0};
    }
    return {exit.signaled ? Death::Kind::kSignal : Death::Kind::kExited, exit.status};
}

void LiveSession::lose_kernel(const Death& death) {
    const auto self = shared_from_this();  // an answer may let go of the session
    process_.reset();
    for (auto* timer : {&start_timer_, &wall_timer_, &cpu_timer_, &uncork_timer_, &kill_timer_}) {
        timer->cancel();
    }
    ignore_congestion_ = false;
    change(KernelEvent::kDied);
    death_ = death;
    const bool restarts = !closed_ && may_restart(death);
    const std::string text = describe_end(
        death,
        closed_    ? Aftermath::kEnded
        : restarts ? Aftermath::kRestarted
                   : Aftermath::kLeftDead);
    fail_debug_requests(text);
    std::optional<Message> parent;
    if (current_.has_value()) {
        parent = current_->request.message;
        fail_current(death, text);
    } else if (is_news(death) && !setup_.spare) {
        publish(messages_.stream("stderr", text + "\n", last_parent_header_));
    }
    if (death.kind != Death::Kind::kRequested || closed_) {
        fail_waiting(death, text);
    }
    if (adopted_) {
        adopted_->set(Error(ErrorCode::kUnavailable, text));
    }
    if (closed_) {
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

void LiveSession::restart_kernel(const Message* parent, const Death& death) {
    if (ready_) {
        ready_->set(Error(ErrorCode::kUnavailable, describe(death)));
    }
    ++restarts_;
    change(KernelEvent::kRestart);
    publish(messages_.status(
        "restarting", parent, to_string(death), describe_end(death, Aftermath::kRestarted)));
    if (const Status launched = launch_kernel(); launched.has_error()) {
        const Death failed{Death::Kind::kStartFailed, 0};
        process_.reset();
        change(KernelEvent::kDied);
        death_ = failed;
        fail_waiting(failed, describe_end(failed, Aftermath::kLeftDead));
        stay_dead(launched, parent, failed);
    }
}

void LiveSession::stay_dead(const Status& status, const Message* parent, const Death& death) {
    publish(messages_.status(
        "dead", parent, to_string(death), describe_end(death, Aftermath::kLeftDead)));
    settle_ready(status);
    answer_waiting_for_info();
    watch_life();
    if (setup_.spare) {
        setup_.on_end_requested(death);
    }
}

std::string LiveSession::describe_end(const Death& death, Aftermath aftermath) const {
    return session::describe(death, setup_.options.limits, aftermath);
}

std::string LiveSession::prepare_working_directory() {
    const std::string& wanted = setup_.options.working_directory;
    // A guest that has put something else in its place gets its workspace: better than no
    // interpreter.
    if (wanted.empty() || workspace_.make_directory(wanted).has_error()) {
        return sandbox::kWorkspacePath;
    }
    return std::string(sandbox::kWorkspacePath) + "/" + wanted;
}

bool LiveSession::may_restart(const Death& death) {
    if (setup_.spare) {
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

void LiveSession::settle_ready(const Status& status) {
    if (ready_) {
        ready_->set(status);
    }
    if (const auto waiter = std::exchange(restart_waiter_, nullptr)) {
        waiter->set(status);
    }
}

}  // namespace cellkeep::session
