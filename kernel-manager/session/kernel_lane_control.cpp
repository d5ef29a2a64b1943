// SPDX-License-Identifier: Apache-2.0
//
// What the lane does for its ControlResponder and its DebugRouter.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/output/output_replay.hpp"
#include "kernel-manager/session/kernel_lane.hpp"
#include "protocol/json.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

using protocol::Message;

ControlResponder::Kernel KernelLane::control_hooks() {
    return {
        .messages = [this]() -> const ServerMessages& { return messages_; },
        .publish = [this](Message message) { publish(std::move(message)); },
        .repeat_busy = [this] { repeat_busy(); },
        .info = [this]() -> const std::optional<nlohmann::json>& { return kernel_info_; },
        .is_dead = [this] { return state_ == KernelState::kDead; },
        .interrupt = [this] { return interrupt(); },
        .restart = [this] { begin_restart(); },
        .end_session =
            [this] {
                shared_.setup.on_end_requested({Death::Kind::kRequested, 0});
            },
        .usage = [this] { return host_.make_usage(); },
        .replay =
            [this](const Message& request, ReplySink& origin) { answer_replay(request, origin); },
        .debug =
            [this](const Message& request, const std::shared_ptr<ReplySink>& origin) {
                debugger_.submit(request, origin);
            },
        .log_unknown =
            [this](const std::string& type) {
                shared_.setup.log(
                    "session " + shared_.setup.id + ": ignored a control message of unknown type " +
                    protocol::dump_json(type));
            }};
}

DebugRouter::Kernel KernelLane::debug_hooks() {
    return {
        .messages = [this]() -> const ServerMessages& { return messages_; },
        .publish = [this](Message message) { publish(std::move(message)); },
        .repeat_busy = [this] { repeat_busy(); },
        .check_debugger = [this]() -> Status {
            if (!process_) {
                return Error(ErrorCode::kUnavailable, "The interpreter is gone.");
            }
            if (!kernel_info_.has_value() ||
                kernel_info_->value("debugger", nlohmann::json(false)) != true) {
                return Error(ErrorCode::kUnavailable, "This kernel has no debugger.");
            }
            host_.wake();
            return ok();
        },
        .send = [this](const Message& request) { return process_->send(request); }};
}

void KernelLane::submit_control(Message request, std::shared_ptr<ReplySink> origin) {
    boost::asio::post(
        shared_.io, [self = hold(), request = std::move(request), origin = std::move(origin)] {
            self->control_.submit(request, origin);
        });
}

void KernelLane::answer_waiting_for_info() {
    const auto self = hold();  // an answer may let go of the session
    control_.answer_waiting();
}

void KernelLane::repeat_busy() {
    if (current_.has_value() && current_->is_begun()) {
        // Clients show the newest status, whosever it is; the kernel is still at work.
        publish(messages_.status("busy", &current_->message()));
    }
}

void KernelLane::answer_replay(const Message& request, ReplySink& origin) const {
    const auto question = parse_replay_question(request);
    if (question.has_error()) {
        origin.deliver(messages_.error_reply(request, "ValueError", question.error().message()));
        return;
    }
    const auto place = [this](std::string_view msg_id) {
        if (current_.has_value() && current_->message().header().msg_id == msg_id) {
            return RequestPlace::kRunning;
        }
        return queue_.holds(msg_id) ? RequestPlace::kWaiting : RequestPlace::kNotHere;
    };
    const Replay replay = make_replay(question.value(), shared_.output.journal(), place);
    origin.deliver(messages_.reply_with_text(request, replay.content));
    const auto& asked = question.value().requests;
    if (replay.complete && current_.has_value() && current_->question().has_value() &&
        std::find(asked.begin(), asked.end(), current_->message().header().msg_id) != asked.end()) {
        // The client that was asked first may be gone: this one has taken its place.
        origin.deliver(*current_->question());
    }
}

}  // namespace cellkeep::session
