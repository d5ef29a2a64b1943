// SPDX-License-Identifier: Apache-2.0
//
// Birth of a session's interpreter, and what it says while it lives.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution_events.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/start_variables.hpp"
#include "kernel-manager/session/kernel_lane.hpp"
#include "kernel-manager/output/reply_facts.hpp"
#include "protocol/limits.hpp"
#include "sandbox/policy/policy.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <csignal>
#include <utility>

namespace cellkeep::session {

using protocol::Channel;
using protocol::Message;

namespace {

constexpr std::size_t kStderrTailBytes = 4096;

std::vector<std::string> make_environment(
    const KernelSpec& spec,
    const std::map<std::string, std::string>& own,
    const std::string& session_id,
    const SessionLimits& limits,
    bool has_time) {
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
    // No cgroup is visible inside: what sizes its pools by the machine (DuckDB) reads these.
    env.push_back("CELLKEEP_MEMORY_BYTES=" + std::to_string(limits.memory_mb << 20U));
    env.push_back("CELLKEEP_CPU_CORES=" + std::to_string(limits.cpu_cores));
    if (has_time) {
        env.emplace_back("CELLKEEP_REHEARSE=1");  // kernels/python/cellkeep_kernel/rehearsal.py
    }
    return env;
}

}  // namespace

void KernelLane::change(KernelEvent event) {
    if (const auto next = next_state(state_, event)) {
        state_ = *next;
    }
}

Status KernelLane::launch() {
    host_.wake();  // the others may stand still
    if (!is_main() || restarts_ > 0) {
        oom_kills_seen_ = shared_.counters().oom_kills;
    }
    const std::weak_ptr<KernelLane> weak = this->weak();
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
    messages_ = ServerMessages(
        "cellkeep-" + shared_.setup.id + (is_main() ? "-" : "-" + spec_.language + "-") +
        std::to_string(restarts_));
    ready_ = std::make_shared<Completion<Status>>(shared_.io);
    // A zygote is of the session's own language.
    const bool warm =
        is_main() && shared_.sandbox.is_warm() && !has_start_variables(shared_.setup.options.env);
    BOOST_OUTCOME_TRY(
        process_,
        KernelProcess::start(
            shared_.io,
            shared_.sandbox,
            spec_.argv,
            make_environment(
                spec_,
                shared_.setup.options.env,
                shared_.setup.id,
                session_limits(),
                warm && shared_.setup.spare),
            prepare_working_directory(),
            warm,
            group_,
            std::move(events)));
    if (!is_main()) {
        count_own_cpu();
    }

    start_timer_.expires_after(shared_.setup.start_timeout);
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

void KernelLane::on_ready(const Message& kernel_info) {
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
    if (!shared_.setup.spare) {
        host_.note_use();
    }
    host_.review_life();  // what kept the session may have ended with its last interpreter
}

void KernelLane::on_kernel_message(Message message) {
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
                const bool done = says(message, protocol::Member::kStatus, "ok");
                adopted_->set(
                    done ? Status(ok())
                         : Status(Error(ErrorCode::kSystem, "the kernel could not be handed out")));
            } else {
                debug_requests_.answer(message);
            }
            return;
    }
}

void KernelLane::on_iopub(Message message) {
    const bool is_status = message.header().msg_type == "status";
    if (is_status && message.parent().msg_id == ready_probe_id_) {
        return;  // our own first question is nobody's news
    }
    if (is_status && !end_probe_id_.empty() && message.parent().msg_id == end_probe_id_) {
        claimed_end_.settle();
        return;
    }
    const bool of_current = is_status && current_.has_value() &&
                            message.parent().msg_id == current_->request.message.header().msg_id;
    if (is_status && !of_current && current_.has_value() && !current_->begun && process_) {
        // The true end of a run whose end was claimed: its last words belong before the next run's.
        process_->drain_pipes();
    }
    bool idle = false;
    if (of_current) {
        idle = says(message, protocol::Member::kExecutionState, "idle");
        const bool busy = says(message, protocol::Member::kExecutionState, "busy");
        if (busy && !std::exchange(current_->begun, true)) {
            claimed_end_.settle();
            // Until now, what came through the pipes was of an earlier run, or of nobody's.
            last_parent_header_ = std::string(current_->request.message.header_json());
            if (current_->interrupt_at_busy && process_) {
                (void)process_->send_signal(SIGINT);  // fails only if the process is gone
            }
        }
    }
    if (idle && process_) {
        // What C code and finished subprocesses printed is in the pipes by now: it belongs before
        // the idle.
        process_->drain_pipes();
    }
    if (idle && current_.has_value()) {
        host_.take_denials();
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

void KernelLane::publish(Message message) {
    host_.note_output(message, is_tracked_running());
    if (current_.has_value() && current_->request.execution &&
        message.parent().msg_id == current_->request.message.header().msg_id) {
        current_->request.execution->recorder.on_output(message, &shared_.workspace);
        add_output_event(*current_->request.execution->execution, message);
    }
    // A front end watches one kernel. What others say is in the answers to their executions.
    const bool congested = is_main() && host_.show(std::move(message));
    if (congested && !ignore_congestion_ && !draining_ && process_) {
        process_->pause_reading();
    }
}

void KernelLane::on_kernel_text(OutputStream stream, std::string_view text) {
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

void KernelLane::on_link_closed(const Error& /*error*/) {
    // Nearly always the first sign of an exit whose report is on its way from pid 1.
    if (!process_) {
        return;
    }
    start_timer_.expires_after(limits::kLinkClosedGrace);
    start_timer_.async_wait(
        [weak = weak(), worker = process_->id()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->process_ && self->process_->id() == worker) {
                self->kill_kernel({Death::Kind::kLinkBroken, 0});
            }
        });
}

std::string KernelLane::prepare_working_directory() const {
    const std::string& wanted = shared_.setup.options.working_directory;
    // A guest that has put something else in its place gets its workspace: better than no
    // interpreter.
    if (wanted.empty() || shared_.workspace.make_directory(wanted).has_error()) {
        return sandbox::kWorkspacePath;
    }
    return std::string(sandbox::kWorkspacePath) + "/" + wanted;
}

}  // namespace cellkeep::session
