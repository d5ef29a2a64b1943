// SPDX-License-Identifier: Apache-2.0
#include "protocol/message.hpp"

#include "protocol/limits.hpp"
#include "tests/unit/protocol/frame_bytes.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using Catch::Matchers::Contains;
using cellkeep::ErrorCode;
using cellkeep::protocol::Channel;
using cellkeep::protocol::find_channel;
using cellkeep::protocol::Header;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::protocol::MessageParts;
using cellkeep::test::right_frame;
using nlohmann::json;

namespace limits = cellkeep::limits;

namespace {

const std::string kHeader = R"({"msg_id":"m","msg_type":"execute_request","session":"s"})";
const std::string kParent = R"({"msg_id":"p","msg_type":"parent"})";

void check_message_refused(std::string frame, ErrorCode code, const std::string& reason) {
    CAPTURE(reason);
    const auto message = Message::from_frame(std::move(frame));
    REQUIRE(message.has_error());
    CHECK(message.error().code() == code);
    CHECK_THAT(message.error().message(), Contains(reason));
}

}  // namespace

TEST_CASE("a message is the frame it came in", "[protocol][message]") {
    const std::string frame =
        right_frame({"stdin", kHeader, kParent, R"({"k":1})", R"({"value":"é"})", "B0", ""});
    const auto made = Message::from_frame(frame);
    REQUIRE(made.has_value());
    const Message& message = made.value();
    CHECK(message.channel() == Channel::kStdin);
    CHECK(message.header().msg_id == "m");
    CHECK(message.header().msg_type == "execute_request");
    CHECK(message.parent().msg_id == "p");
    CHECK(message.header_json() == kHeader);
    CHECK(message.parent_header_json() == kParent);
    CHECK(message.metadata_json() == R"({"k":1})");
    CHECK(message.content_json() == R"({"value":"é"})");
    REQUIRE(message.buffer_count() == 2);
    CHECK(message.buffer(0) == "B0");
    CHECK(message.buffer(1).empty());
    CHECK(message.parse_content().value() == json{{"value", "é"}});
    CHECK(message.parse_metadata().value() == json{{"k", 1}});
    CHECK(message.frame() == frame);
    const Message copy = message;
    CHECK(copy.frame().data() == message.frame().data());
}

TEST_CASE("create encodes what from_frame reads", "[protocol][message]") {
    const auto made = Message::create(MessageParts{
        .channel = Channel::kIopub,
        .header = kHeader,
        .parent_header = kParent,
        .metadata = "{}",
        .content = R"({"a":[]})",
        .buffers = {"one", "two"}});
    REQUIRE(made.has_value());
    CHECK(
        made.value().frame() ==
        right_frame({"iopub", kHeader, kParent, "{}", R"({"a":[]})", "one", "two"}));
    CHECK(Message::from_frame(std::string(made.value().frame())).has_value());
}

TEST_CASE("a message of our own making has the parts it was given", "[protocol][message]") {
    const auto header = make_header("status", "s", "u");
    const auto message = Message::make(
        Channel::kIopub, header, json{{"msg_id", "p"}}, {{"execution_state", "idle"}});
    CHECK(message.channel() == Channel::kIopub);
    CHECK(message.header().msg_id == header.msg_id);
    CHECK(message.parent().msg_id == "p");
    CHECK(message.metadata_json() == "{}");
    CHECK(message.parse_content().value() == json{{"execution_state", "idle"}});
    CHECK(message.buffer_count() == 0);

    // A request without a parent.
    const auto first = Message::make(Channel::kShell, header, json::object(), json::object());
    CHECK(first.parent().msg_id.empty());
    CHECK(first.parent_header_json() == "{}");
}

TEST_CASE("a parent header that grows past its limit is cut to its fields", "[protocol][message]") {
    // A peer may write 1e15; dumped again it is 1e+15.
    json parent{{"msg_id", "p"}, {"msg_type", "x"}, {"session", 5}};
    for (int i = 0; i < 13'000; ++i) {
        parent["padding"].push_back(1e15);
    }
    const auto message =
        Message::make(Channel::kShell, make_header("status", "s", "u"), parent, json::object());
    CHECK(message.parent().msg_id == "p");
    CHECK(message.parent().session.empty());
    CHECK(message.parent_header_json().size() < 200);
}

TEST_CASE("with_channel changes the channel and nothing else", "[protocol][message]") {
    const auto made =
        Message::from_frame(right_frame({"shell", kHeader, kParent, "{}", "{}", "buffer"}));
    REQUIRE(made.has_value());
    const auto moved = made.value().with_channel(Channel::kControl);
    REQUIRE(moved.has_value());
    CHECK(moved.value().channel() == Channel::kControl);
    CHECK(
        moved.value().frame() == right_frame({"control", kHeader, kParent, "{}", "{}", "buffer"}));
    CHECK(moved.value().header().msg_id == "m");
    CHECK(moved.value().parent().msg_id == "p");
    CHECK(made.value().channel() == Channel::kShell);
}

TEST_CASE("with_channel refuses what no longer fits", "[protocol][message][limits]") {
    const std::size_t rest = right_frame({"shell", kHeader, "{}", "{}", "{}", ""}).size();
    const std::string buffer(limits::kFrameBytesMax - rest, 'b');
    const auto made = Message::create(MessageParts{
        .channel = Channel::kShell,
        .header = kHeader,
        .parent_header = "{}",
        .metadata = "{}",
        .content = "{}",
        .buffers = {buffer}});
    REQUIRE(made.has_value());
    CHECK(made.value().with_channel(Channel::kStdin).has_value());
    const auto longer = made.value().with_channel(Channel::kControl);
    REQUIRE(longer.has_error());
    CHECK(longer.error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("an unknown channel is refused", "[protocol][message]") {
    for (const char* name : {"", "Shell", "shell ", "hb", "iopub\n", "heartbeat"}) {
        check_message_refused(
            right_frame({name, kHeader, "{}", "{}", "{}"}),
            ErrorCode::kProtocol,
            "unknown channel");
        CHECK(!find_channel(name).has_value());
    }
    for (const auto channel :
         {Channel::kShell, Channel::kControl, Channel::kStdin, Channel::kIopub}) {
        CHECK(find_channel(to_string(channel)) == channel);
    }
}

TEST_CASE("a frame with bad headers is refused", "[protocol][message]") {
    const auto code = ErrorCode::kProtocol;
    check_message_refused("", code, "frame");
    check_message_refused(
        right_frame({"shell", "", "{}", "{}", "{}"}), code, "header: not valid JSON");
    check_message_refused(
        right_frame({"shell", "[]", "{}", "{}", "{}"}), code, "header: not a JSON object");
    check_message_refused(
        right_frame({"shell", "{}", "{}", "{}", "{}"}), code, "msg_id is missing");
    check_message_refused(
        right_frame({"shell", kHeader, "", "{}", "{}"}), code, "parent_header: not valid");
    check_message_refused(
        right_frame({"shell", kHeader, "[]", "{}", "{}"}), code, "parent_header: not a");
    check_message_refused(
        right_frame({"shell", kHeader, std::string(limits::kHeaderBytesMax + 1, ' '), "{}", "{}"}),
        code,
        "parent_header: longer");
}

TEST_CASE("create refuses what from_frame would", "[protocol][message]") {
    MessageParts parts{.channel = Channel::kShell, .header = kHeader, .buffers = {}};
    REQUIRE(Message::create(parts).has_value());
    SECTION("a header that is not one") {
        parts.header = "{}";
        CHECK(Message::create(parts).error().code() == ErrorCode::kProtocol);
    }
    SECTION("a parent header that is not one") {
        parts.parent_header = "null";
        CHECK(Message::create(parts).error().code() == ErrorCode::kProtocol);
    }
    SECTION("more than limits::kBuffersMax buffers") {
        parts.buffers.assign(limits::kBuffersMax, "b");
        CHECK(Message::create(parts).value().buffer_count() == limits::kBuffersMax);
        parts.buffers.emplace_back("b");
        CHECK(Message::create(parts).error().code() == ErrorCode::kLimitExceeded);
    }
    SECTION("more than limits::kFrameBytesMax bytes") {
        const std::string half(limits::kFrameBytesMax / 2, ' ');
        parts.buffers = {half, half};
        CHECK(Message::create(parts).error().code() == ErrorCode::kLimitExceeded);
    }
}

TEST_CASE("content and metadata are checked only when they are parsed", "[protocol][message]") {
    const std::string text = GENERATE("", "[]", "1", "{", "{}{}", "\"\xff\"");
    CAPTURE(text);
    const auto made = Message::from_frame(right_frame({"iopub", kHeader, "{}", text, text}));
    REQUIRE(made.has_value());
    const auto content = made.value().parse_content();
    REQUIRE(content.has_error());
    CHECK(content.error().code() == ErrorCode::kProtocol);
    CHECK_THAT(content.error().message(), Contains("content"));
    const auto metadata = made.value().parse_metadata();
    REQUIRE(metadata.has_error());
    CHECK_THAT(metadata.error().message(), Contains("metadata"));
}
