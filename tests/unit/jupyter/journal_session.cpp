// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/jupyter/journal_session.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::jupyter::test {

using nlohmann::json;

JournalSession::JournalSession(std::size_t messages_max, std::size_t bytes_max)
    : journal_(messages_max, bytes_max) {
    on_publish = [this](const protocol::Message& message) { (void)journal_.append(message); };
    on_resume = [this] { ++resumed; };
}

session::SessionInfo JournalSession::info() const {
    session::SessionInfo info = FakeSession::info();
    info.owner = "owner";
    info.death = death_;
    return info;
}

std::string JournalSession::say_type(
    const std::string& msg_type, const json& content, const std::string& request) {
    json parent = json::object();
    if (!request.empty()) {
        parent = {{"msg_id", request}, {"msg_type", "execute_request"}, {"session", "client"}};
    }
    const protocol::Header header = protocol::make_header(msg_type, "kernel", "user");
    publish(protocol::Message::make(protocol::Channel::kIopub, header, parent, content));
    return header.msg_id;
}

std::string JournalSession::say(const std::string& text, const std::string& request) {
    return say_type("stream", {{"name", "stdout"}, {"text", text}}, request);
}

void JournalSession::say_many(std::size_t messages, const std::string& request) {
    for (std::size_t i = 0; i < messages; ++i) {
        (void)say(std::to_string(i), request);
    }
}

std::string JournalSession::say_status(const std::string& state, const std::string& request) {
    return say_type("status", {{"execution_state", state}}, request);
}

protocol::Message make_reply(const std::string& tag, protocol::Channel channel) {
    return protocol::Message::make(
        channel,
        protocol::make_header("execute_reply", "kernel", "user"),
        json::object(),
        {{"status", "ok"}, {"tag", tag}});
}

std::string text_of(const protocol::Message& message) {
    const json content = message.parse_content().value();
    for (const char* name : {"text", "tag", "execution_state"}) {
        if (content.contains(name)) {
            return content[name].get<std::string>();
        }
    }
    return message.header().msg_type;
}

}  // namespace cellkeep::jupyter::test
