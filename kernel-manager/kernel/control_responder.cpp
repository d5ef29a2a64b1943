// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/control_responder.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Message;

namespace {

/// Shell requests, which ipykernel takes on control too, end in an error here. A client does not
/// wait for an answer to other types. JEP 91 says so of its subshell requests, too ("Kernels not
/// supporting subshells"): they are ignored.
bool is_declined(std::string_view type) {
    constexpr std::array<std::string_view, 8> kDeclined = {
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

void ControlResponder::submit(const Message& request, const Sink& origin) {
    const std::string& type = request.header().msg_type;
    const bool needs_info = (type == "kernel_info_request" || type == "debug_request") &&
                            !kernel_.info().has_value() && !kernel_.is_dead();
    const bool has_room = waiting_.size() < limits::kShellQueueMax;
    const bool is_early = has_room && type == "kernel_info_request" &&
                          request.channel() == protocol::Channel::kShell &&
                          kernel_.await_failed_end();
    if (has_room && (needs_info || is_early)) {
        waiting_.emplace_back(request, origin);
        return;
    }
    answer(request, origin);
}

void ControlResponder::answer(const Message& request, const Sink& origin) {
    const std::string& type = request.header().msg_type;
    if (type == "debug_request") {
        kernel_.debug(request, origin);
        return;
    }
    if (type == "shutdown_request") {
        answer_shutdown(request, *origin);
        return;
    }
    kernel_.publish(kernel_.messages().status("busy", &request));
    answer_by_type(request, *origin);
    kernel_.publish(kernel_.messages().status("idle", &request));
    kernel_.repeat_busy();
}

void ControlResponder::answer_by_type(const Message& request, ReplySink& origin) const {
    const std::string& type = request.header().msg_type;
    if (type == "kernel_info_request") {
        const std::optional<json>& info = kernel_.info();
        origin.deliver(
            info.has_value() ? kernel_.messages().reply(request, *info)
                             : kernel_.messages().error_reply(
                                   request, "KernelDead", "The interpreter is gone."));
    } else if (type == "interrupt_request") {
        const Status done = kernel_.interrupt();
        origin.deliver(
            done.has_value() ? kernel_.messages().reply(request, {{"status", "ok"}})
                             : kernel_.messages().error_reply(
                                   request, "InterruptFailed", done.error().message()));
    } else if (type == "usage_request") {
        origin.deliver(kernel_.messages().reply(request, kernel_.usage()));
    } else if (type == "cellkeep_replay_request") {
        kernel_.replay(request, origin);
    } else if (is_declined(type)) {
        origin.deliver(kernel_.messages().error_reply(
            request, "NotImplementedError", type + " is not supported by this kernel."));
    } else {
        kernel_.log_unknown(type);
    }
}

void ControlResponder::answer_shutdown(const Message& request, ReplySink& origin) const {
    const auto content = request.parse_content();
    const bool restart = content.has_value() && content.value().contains("restart") &&
                         content.value()["restart"].is_boolean() &&
                         content.value()["restart"].get<bool>();
    kernel_.publish(kernel_.messages().status("busy", &request));
    origin.deliver(kernel_.messages().reply(request, {{"status", "ok"}, {"restart", restart}}));
    kernel_.publish(kernel_.messages().status("idle", &request));
    if (restart) {
        kernel_.restart();
    } else {
        kernel_.end_session();
    }
}

void ControlResponder::answer_waiting() {
    for (const auto& [request, origin] : std::exchange(waiting_, {})) {
        answer(request, origin);
    }
}

void ControlResponder::refuse_waiting(const std::string& why) {
    for (const auto& [request, origin] : std::exchange(waiting_, {})) {
        kernel_.publish(kernel_.messages().status("busy", &request));
        origin->deliver(kernel_.messages().error_reply(request, "SessionClosed", why));
        kernel_.publish(kernel_.messages().status("idle", &request));
    }
}

}  // namespace cellkeep::session
