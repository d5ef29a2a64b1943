// SPDX-License-Identifier: Apache-2.0
//
// What the server answers in its kernel's place, at once and also while the kernel is busy.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/output/output_replay.hpp"
#include "kernel-manager/session/kernel_lane.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "sandbox/policy/policy.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Message;

namespace {

/// Requests that a client of protocol 5.5 may send on control and that end in an error here: JEP
/// 91's subshells, which no kernel here claims, and shell requests, which ipykernel takes on
/// control too. Of other types nobody waits for an answer.
bool is_declined(std::string_view type) {
    constexpr std::array<std::string_view, 11> kDeclined = {
        "create_subshell_request",
        "delete_subshell_request",
        "list_subshell_request",
        "execute_request",
        "complete_request",
        "inspect_request",
        "history_request",
        "is_complete_request",
        "comm_info_request",
        "connect_request",
        "apply_request"};
    return std::find(kDeclined.begin(), kDeclined.end(), type) != kDeclined.end();
}

}  // namespace

void KernelLane::submit_control(Message request, std::shared_ptr<ReplySink> origin) {
    boost::asio::post(
        shared_.io, [self = hold(), request = std::move(request), origin = std::move(origin)] {
            const std::string& type = request.header().msg_type;
            const bool needs_info = (type == "kernel_info_request" || type == "debug_request") &&
                                    !self->kernel_info_.has_value() &&
                                    self->state_ != KernelState::kDead;
            if (needs_info && self->waiting_for_info_.size() < limits::kShellQueueMax) {
                self->waiting_for_info_.emplace_back(request, origin);
                return;
            }
            self->answer_control(request, origin);
        });
}

void KernelLane::answer_control(const Message& request, const std::shared_ptr<ReplySink>& asker) {
    const auto self = hold();  // an answer may let go of the session
    const std::string& type = request.header().msg_type;
    if (type == "debug_request") {
        submit_debug(request, asker);
        return;
    }
    ReplySink& origin = *asker;
    if (type == "shutdown_request") {
        answer_shutdown(request, origin);
        return;
    }
    publish(messages_.status("busy", &request));
    if (type == "kernel_info_request") {
        origin.deliver(
            kernel_info_.has_value()
                ? messages_.reply(request, *kernel_info_)
                : messages_.error_reply(request, "KernelDead", "The interpreter is gone."));
    } else if (type == "interrupt_request") {
        const Status done = interrupt();
        origin.deliver(
            done.has_value()
                ? messages_.reply(request, {{"status", "ok"}})
                : messages_.error_reply(request, "InterruptFailed", done.error().message()));
    } else if (type == "usage_request") {
        origin.deliver(messages_.reply(request, host_.make_usage()));
    } else if (type == "cellkeep_replay_request") {
        answer_replay(request, origin);
    } else if (is_declined(type)) {
        origin.deliver(messages_.error_reply(
            request, "NotImplementedError", type + " is not supported by this kernel."));
    } else {
        shared_.setup.log(
            "session " + shared_.setup.id + ": ignored a control message of unknown type " +
            protocol::dump_json(type));
    }
    publish(messages_.status("idle", &request));
    repeat_busy();
}

void KernelLane::repeat_busy() {
    if (current_.has_value() && current_->begun) {
        // Clients show the newest status, whosever it is; the kernel is still at work.
        publish(messages_.status("busy", &current_->request.message));
    }
}

void KernelLane::answer_shutdown(const Message& request, ReplySink& origin) {
    const auto content = request.parse_content();
    const bool restart = content.has_value() && content.value().contains("restart") &&
                         content.value()["restart"].is_boolean() &&
                         content.value()["restart"].get<bool>();
    publish(messages_.status("busy", &request));
    origin.deliver(messages_.reply(request, {{"status", "ok"}, {"restart", restart}}));
    publish(messages_.status("idle", &request));
    if (restart) {
        begin_restart();
    } else {
        shared_.setup.on_end_requested({Death::Kind::kRequested, 0});
    }
}

void KernelLane::answer_waiting_for_info() {
    for (auto& [request, origin] : std::exchange(waiting_for_info_, {})) {
        answer_control(request, origin);
    }
}

void KernelLane::answer_replay(const Message& request, ReplySink& origin) const {
    const auto question = parse_replay_question(request);
    if (question.has_error()) {
        origin.deliver(messages_.error_reply(request, "ValueError", question.error().message()));
        return;
    }
    const auto place = [this](std::string_view msg_id) {
        if (current_.has_value() && current_->request.message.header().msg_id == msg_id) {
            return RequestPlace::kRunning;
        }
        return queue_.holds(msg_id) ? RequestPlace::kWaiting : RequestPlace::kNotHere;
    };
    const Replay replay = make_replay(question.value(), shared_.journal, place);
    origin.deliver(messages_.reply_with_text(request, replay.content));
    const auto& asked = question.value().requests;
    if (replay.complete && current_.has_value() && current_->question.has_value() &&
        std::find(asked.begin(), asked.end(), current_->request.message.header().msg_id) !=
            asked.end()) {
        // The client that was asked first may be gone: this one has taken its place.
        origin.deliver(*current_->question);
    }
}

}  // namespace cellkeep::session
