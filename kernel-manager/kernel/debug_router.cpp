// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/debug_router.hpp"

namespace cellkeep::session {

using protocol::Message;

void DebugRouter::submit(const Message& request, const std::shared_ptr<ReplySink>& origin) {
    if (const Status passed = pass(request, origin); passed.has_error()) {
        refuse(request, *origin, passed.error().message());
    }
}

Status DebugRouter::pass(const Message& request, const std::shared_ptr<ReplySink>& origin) {
    BOOST_OUTCOME_TRY(kernel_.check_debugger());
    BOOST_OUTCOME_TRY(requests_.add(request, origin));
    Status sent = kernel_.send(request);
    if (sent.has_error()) {
        requests_.forget(request.header().msg_id);
    }
    return sent;
}

void DebugRouter::refuse(const Message& request, ReplySink& origin, const std::string& text) const {
    const auto content = request.parse_content();
    kernel_.publish(kernel_.messages().status("busy", &request));
    origin.deliver(kernel_.messages().reply(
        request,
        make_debug_failure(
            content.has_value() ? content.value() : nlohmann::json::object(), text)));
    kernel_.publish(kernel_.messages().status("idle", &request));
    kernel_.repeat_busy();
}

void DebugRouter::fail_all(const std::string& text) {
    for (const auto& [request, origin] : requests_.take_all()) {
        refuse(request, *origin, text);
    }
}

}  // namespace cellkeep::session
