// SPDX-License-Identifier: Apache-2.0
//
// Birth of a session's interpreter, and what it says while it lives.
#include "kernel-manager/session/execution_events.hpp"
#include "kernel-manager/session/live_session.hpp"
#include "kernel-manager/session/start_variables.hpp"
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
            sandbox_.is_warm() && !has_start_variables(setup_.options.env),
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
    if (!setup_.spare) {
        freezer_.note_use();
    }
    if (life_blocked_) {
        watch_life();  // what kept the session may have ended with its last interpreter
    }
}

void LiveSession::on_kernel_message(Message message) {
    count_output(message.frame().size());
    if (kill_reason_.has_value() && kill_reason_->kind == Death::Kind::kOutputLimit) {
        return;  // it is being killed for what it says
    }
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
    if (idle && current_.has_value()) {
        take_denials();
        settle_limits(std::nullopt);
    }
    if (!is_status && current_.has_value() && current_->cut == Cut::kOutputLimit &&
        message.header().msg_type != "error") {
        return;  // more of the flood that it is being cut for
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
        add_output_event(*current_->request.execution->execution, entry.message);
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
    count_output(text.size());
    if (current_.has_value() && current_->cut == Cut::kOutputLimit) {
        return;  // more of the flood that it is being cut for
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
        Result<std::optional<sandbox::SandboxEvent>> event = next_sandbox_event();
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
        switch (event.value()->kind) {
            case sandbox::SandboxEvent::Kind::kDenied:
                guard_.on_denied(event.value()->denial);
                break;
            case sandbox::SandboxEvent::Kind::kSwept:
                on_swept();
                break;
            case sandbox::SandboxEvent::Kind::kWorkerExited:
            case sandbox::SandboxEvent::Kind::kSandboxDied:  // told above
                on_kernel_exit(event.value()->worker);
                break;
        }
    }
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

}  // namespace cellkeep::session
