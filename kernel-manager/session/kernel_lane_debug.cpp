// SPDX-License-Identifier: Apache-2.0
//
// debug_request: passed to the kernel at once, past the queue (debug_requests.hpp).
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/session/kernel_lane.hpp"

#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Message;

bool KernelLane::has_debugger() const {
    return kernel_info_.has_value() && kernel_info_->value("debugger", json(false)) == true;
}

void KernelLane::submit_debug(const Message& request, std::shared_ptr<ReplySink> origin) {
    const std::shared_ptr<ReplySink> asker = std::move(origin);
    Status sent = Error(
        ErrorCode::kUnavailable,
        process_ ? "This kernel has no debugger." : "The interpreter is gone.");
    if (process_ && has_debugger()) {
        host_.wake();
        sent = debug_requests_.add(request, asker);
        if (sent.has_value()) {
            sent = process_->send(request);
            if (sent.has_value()) {
                return;  // the kernel says busy, replies and says idle
            }
            debug_requests_.forget(request.header().msg_id);
        }
    }
    refuse_debug(request, *asker, sent.error().message());
}

void KernelLane::refuse_debug(
    const Message& request, ReplySink& origin, const std::string& message) {
    const auto content = request.parse_content();
    publish(messages_.status("busy", &request));
    origin.deliver(messages_.reply(
        request,
        make_debug_failure(content.has_value() ? content.value() : json::object(), message)));
    publish(messages_.status("idle", &request));
    repeat_busy();
}

void KernelLane::fail_debug_requests(const std::string& text) {
    for (const auto& [request, origin] : debug_requests_.take_all()) {
        refuse_debug(request, *origin, text);
    }
}

}  // namespace cellkeep::session
