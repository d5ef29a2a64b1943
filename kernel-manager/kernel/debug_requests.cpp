// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/debug_requests.hpp"

#include "kernel-manager/kernel/server_messages.hpp"

#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Message;

namespace {

/// The protocol's commands are words; what is longer is not repeated.
constexpr std::size_t kCommandBytesMax = 64;

json seq_of(const json& request) {
    const auto seq = request.find("seq");
    return seq != request.end() && seq->is_number_integer() ? *seq : json(0);
}

json command_of(const json& request) {
    const auto command = request.find("command");
    const bool is_short = command != request.end() && command->is_string() &&
                          command->get_ref<const std::string&>().size() <= kCommandBytesMax;
    return is_short ? *command : json("");
}

}  // namespace

json make_debug_failure(const json& request, std::string_view message) {
    json content = make_error_content("debug_request", "DebugFailed", message);
    content["type"] = "response";
    content["seq"] = 0;
    content["request_seq"] = seq_of(request);
    content["command"] = command_of(request);
    content["success"] = false;
    content["message"] = message;
    content["body"] = json::object();
    return content;
}

Status DebugRequests::add(const Message& request, std::shared_ptr<ReplySink> origin) {
    if (pending_.size() >= kDebugRequestsMax) {
        return Error(ErrorCode::kLimitExceeded, "Too many debug requests wait for the kernel.");
    }
    const auto content = request.parse_content();
    const json read = content.has_value() ? content.value() : json::object();
    Message slim = Message::make(
        request.channel(),
        request.header(),
        json::object(),
        {{"seq", seq_of(read)}, {"command", command_of(read)}});
    const auto [_, added] =
        pending_.try_emplace(request.header().msg_id, Pending{std::move(slim), std::move(origin)});
    if (!added) {
        return Error(ErrorCode::kConflict, "A debug request with this msg_id is waiting already.");
    }
    return ok();
}

void DebugRequests::answer(const Message& reply) {
    const auto found = pending_.find(reply.parent().msg_id);
    if (found == pending_.end() || reply.header().msg_type != "debug_reply") {
        return;
    }
    const auto origin = std::move(found->second.origin);
    pending_.erase(found);
    origin->deliver(reply);
}

void DebugRequests::forget(std::string_view msg_id) {
    if (const auto found = pending_.find(msg_id); found != pending_.end()) {
        pending_.erase(found);
    }
}

std::vector<DebugRequests::Pending> DebugRequests::take_all() {
    std::vector<Pending> all;
    for (auto& [_, pending] : std::exchange(pending_, {})) {
        all.push_back(std::move(pending));
    }
    return all;
}

}  // namespace cellkeep::session
