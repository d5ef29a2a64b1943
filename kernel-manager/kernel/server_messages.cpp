// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/server_messages.hpp"

namespace cellkeep::session {

namespace {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;

constexpr std::string_view kServerUser = "cellkeep";

}  // namespace

std::optional<std::string> find_reply_type(std::string_view request_type) {
    constexpr std::string_view kSuffix = "_request";
    if (!request_type.ends_with(kSuffix)) {
        return std::nullopt;
    }
    request_type.remove_suffix(kSuffix.size());
    return std::string(request_type) + "_reply";
}

json make_error_content(
    std::string_view request_type, std::string_view ename, std::string_view evalue) {
    json content = {
        {"status", "error"},
        {"ename", ename},
        {"evalue", evalue},
        {"traceback", json::array({std::string(ename) + ": " + std::string(evalue)})}};
    if (request_type == "execute_request") {
        content["execution_count"] = 0;
        content["user_expressions"] = json::object();
        content["payload"] = json::array();
    }
    return content;
}

Message ServerMessages::reply(const Message& request, const json& content) const {
    const std::string type = find_reply_type(request.header().msg_type).value_or("reply");
    return Message::make(
        request.channel(),
        protocol::make_header(type, session_, kServerUser),
        protocol::to_json(request.header()),
        content);
}

Message ServerMessages::reply_with_text(const Message& request, std::string_view content) const {
    const std::string type = find_reply_type(request.header().msg_type).value_or("reply");
    const std::string header =
        protocol::to_json_text(protocol::make_header(type, session_, kServerUser));
    auto message = Message::create(
        {.channel = request.channel(),
         .header = header,
         .parent_header = request.header_json(),
         .metadata = "{}",
         .content = content,
         .buffers = {}});
    CELLKEEP_CHECK(message.has_value());
    return std::move(message).value();
}

Message ServerMessages::error_reply(
    const Message& request, std::string_view ename, std::string_view evalue) const {
    return reply(request, make_error_content(request.header().msg_type, ename, evalue));
}

Message ServerMessages::status(std::string_view execution_state, const Message* parent) const {
    return Message::make(
        Channel::kIopub,
        protocol::make_header("status", session_, kServerUser),
        parent == nullptr ? json::object() : protocol::to_json(parent->header()),
        {{"execution_state", execution_state}});
}

Message ServerMessages::status(
    std::string_view execution_state,
    const Message* parent,
    std::string_view reason,
    std::string_view text) const {
    return Message::make(
        Channel::kIopub,
        protocol::make_header("status", session_, kServerUser),
        parent == nullptr ? json::object() : protocol::to_json(parent->header()),
        {{"execution_state", execution_state}, {"reason", reason}, {"message", text}});
}

Message ServerMessages::error(
    const Message& parent, std::string_view ename, std::string_view evalue) const {
    json content = make_error_content("", ename, evalue);
    content.erase("status");
    return Message::make(
        Channel::kIopub,
        protocol::make_header("error", session_, kServerUser),
        protocol::to_json(parent.header()),
        content);
}

Message ServerMessages::stream(
    std::string_view name, std::string_view text, std::string_view parent_header) const {
    const std::string header = protocol::dump_json(
        protocol::to_json(protocol::make_header("stream", session_, kServerUser)));
    const std::string content = protocol::dump_json({{"name", name}, {"text", text}});
    auto message = Message::create(
        {.channel = Channel::kIopub,
         .header = header,
         .parent_header = parent_header,
         .metadata = "{}",
         .content = content,
         .buffers = {}});
    CELLKEEP_CHECK(message.has_value());  // a chunk is far below every bound of a message
    return std::move(message).value();
}

Message ServerMessages::request(Channel channel, std::string_view type, const json& content) const {
    return Message::make(
        channel, protocol::make_header(type, session_, kServerUser), json::object(), content);
}

}  // namespace cellkeep::session
