// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/server_messages.hpp"

#include <catch2/catch.hpp>

using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::find_reply_type;
using cellkeep::session::make_error_content;
using cellkeep::session::ServerMessages;

namespace {

Message control_request(const char* type) {
    return Message::make(
        Channel::kControl,
        make_header(type, "client", "me"),
        nlohmann::json::object(),
        nlohmann::json::object());
}

}  // namespace

TEST_CASE("reply types follow their request types", "[session][messages]") {
    CHECK(find_reply_type("execute_request") == "execute_reply");
    CHECK(find_reply_type("kernel_info_request") == "kernel_info_reply");
    CHECK_FALSE(find_reply_type("comm_msg").has_value());
    CHECK_FALSE(find_reply_type("input_reply").has_value());
    CHECK_FALSE(find_reply_type("").has_value());
}

TEST_CASE("an error reply has every field that its schema demands", "[session][messages]") {
    const auto execute = make_error_content("execute_request", "E", "v");
    for (const char* field :
         {"status", "ename", "evalue", "traceback", "execution_count", "user_expressions"}) {
        CHECK(execute.contains(field));
    }
    CHECK(execute["traceback"].is_array());
    CHECK_FALSE(make_error_content("inspect_request", "E", "v").contains("execution_count"));
}

TEST_CASE("a reply names its request as parent and stays on its channel", "[session][messages]") {
    const ServerMessages messages("server");
    const Message asked = control_request("interrupt_request");
    const Message reply = messages.reply(asked, {{"status", "ok"}});
    CHECK(reply.channel() == Channel::kControl);
    CHECK(reply.header().msg_type == "interrupt_reply");
    CHECK(reply.header().session == "server");
    CHECK(reply.parent().msg_id == asked.header().msg_id);
    CHECK(reply.parent().session == "client");
}

TEST_CASE("stream text that is not UTF-8 is replaced, not refused", "[session][messages]") {
    const ServerMessages messages("server");
    const Message said = messages.stream("stderr", "a\xff z", "{}");
    CHECK(said.channel() == Channel::kIopub);
    const auto content = said.parse_content().value();
    CHECK(content["name"] == "stderr");
    CHECK(content["text"] == "a\xef\xbf\xbd z");
}

TEST_CASE("a status without a parent has an empty parent header", "[session][messages]") {
    const ServerMessages messages("server");
    CHECK(messages.status("restarting", nullptr).parent_header_json() == "{}");
    const Message asked = control_request("x_request");
    CHECK(messages.status("busy", &asked).parent().msg_id == asked.header().msg_id);
}
