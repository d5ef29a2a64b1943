// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kernels/link_pair.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <thread>

namespace cellkeep::kernels {

using nlohmann::json;
using protocol::Channel;

TEST_CASE("frames that come before the answer are handed out later, in order", "[kernels][inbox]") {
    LinkPair pair;
    REQUIRE(pair.inbox.request_input(pair.outbox, "?", true));
    CHECK(pair.sent_content() == json{{"prompt", "?"}, {"password", true}});
    for (const char* type : {"one", "two"}) {
        (void)pair.send(Channel::kShell, type, json::object());
        CHECK_FALSE(pair.inbox.read_input().value());
    }
    (void)pair.send(Channel::kStdin, "input_reply", {{"value", "v"}});
    const auto reply = pair.inbox.read_input();
    REQUIRE(reply.value());
    CHECK(reply.value()->value == "v");
    CHECK_FALSE(reply.value()->eof);
    CHECK(pair.inbox.has_held());
    CHECK(pair.inbox.next().value()->header().msg_type == "one");
    CHECK(pair.inbox.next().value()->header().msg_type == "two");
    CHECK_FALSE(pair.inbox.has_held());
}

TEST_CASE("only an input_reply without parent or with ours is the answer", "[kernels][inbox]") {
    LinkPair pair;
    REQUIRE(pair.inbox.request_input(pair.outbox, "", false));
    const std::string ours = pair.sent().header().msg_id;
    const json old_parent{{"msg_id", "old"}, {"msg_type", "input_request"}};
    (void)pair.send(Channel::kStdin, "input_reply", {{"value", "stale"}}, old_parent);
    CHECK_FALSE(pair.inbox.read_input().value());
    (void)pair.send(Channel::kStdin, "other", {{"value", "other"}});
    CHECK_FALSE(pair.inbox.read_input().value());
    (void)pair.send(
        Channel::kStdin,
        "input_reply",
        {{"eof", true}},
        {{"msg_id", ours}, {"msg_type", "input_request"}});
    const auto reply = pair.inbox.read_input();
    REQUIRE(reply.value());
    CHECK(reply.value()->eof);
}

TEST_CASE("a question of any type has an answer of its own type", "[kernels][inbox]") {
    LinkPair pair;
    REQUIRE(pair.inbox.ask(pair.outbox, "my_request", R"({"a":1})"));
    const auto asked = pair.sent();
    CHECK(asked.header().msg_type == "my_request");
    CHECK(asked.parse_content().value() == json{{"a", 1}});
    const json parent{{"msg_id", asked.header().msg_id}, {"msg_type", "my_request"}};
    (void)pair.send(Channel::kStdin, "input_reply", {{"value", "v"}}, parent);
    CHECK_FALSE(pair.inbox.read_answer("my_reply").value());
    (void)pair.send(
        Channel::kStdin, "my_reply", {{"b", 1}}, {{"msg_id", "old"}, {"msg_type", "my_request"}});
    CHECK_FALSE(pair.inbox.read_answer("my_reply").value());
    (void)pair.send(Channel::kStdin, "my_reply", {{"b", 2}}, parent);
    const auto answer = pair.inbox.read_answer("my_reply");
    REQUIRE(answer.value());
    CHECK(answer.value()->parse_content().value() == json{{"b", 2}});
}

TEST_CASE("held frames are bounded", "[kernels][inbox]") {
    LinkPair pair;
    REQUIRE(pair.inbox.request_input(pair.outbox, "", false));
    for (std::size_t index = 0; index < kHeldMessagesMax; ++index) {
        (void)pair.send(Channel::kShell, "request", json::object());
        REQUIRE(pair.inbox.read_input());
    }
    (void)pair.send(Channel::kShell, "one too many", json::object());
    const auto reply = pair.inbox.read_input();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a link that closes ends the wait for input", "[kernels][inbox]") {
    LinkPair pair;
    REQUIRE(pair.inbox.request_input(pair.outbox, "", false));
    pair.server.abandon();
    CHECK(pair.inbox.read_input().error().code() == ErrorCode::kUnavailable);
}

TEST_CASE(
    "a shared link gives one type of request to divert, the rest to next", "[kernels][inbox]") {
    LinkPair pair;
    const int before = pair.inbox.fd();
    REQUIRE(pair.inbox.share());
    CHECK(pair.inbox.fd() != before);
    (void)pair.send(Channel::kShell, "one", json::object());
    (void)pair.send(Channel::kShell, "debug_request", json::object());  // the wrong channel
    (void)pair.send(Channel::kControl, "debug_request", {{"n", 1}});
    const auto diverted = pair.inbox.divert("debug_request");
    REQUIRE(diverted);
    CHECK(diverted->parse_content().value()["n"] == 1);
    CHECK(pair.inbox.next().value()->header().msg_type == "one");
    CHECK(pair.inbox.next().value()->header().msg_type == "debug_request");
    pollfd entry{pair.inbox.fd(), POLLIN, 0};
    CHECK(::poll(&entry, 1, 0) == 0);
}

TEST_CASE("an answer to a question comes through a shared link", "[kernels][inbox]") {
    LinkPair pair;
    REQUIRE(pair.inbox.share());
    REQUIRE(pair.inbox.request_input(pair.outbox, "?", false));
    std::thread reader([&] { CHECK_FALSE(pair.inbox.divert("debug_request")); });
    (void)pair.send(Channel::kShell, "held", json::object());
    (void)pair.send(Channel::kStdin, "input_reply", {{"value", "v"}});
    CHECK_FALSE(pair.inbox.read_input().value());
    CHECK(pair.inbox.read_input().value()->value == "v");
    CHECK(pair.inbox.has_held());
    pair.server.abandon();
    reader.join();
    CHECK(pair.inbox.next().value()->header().msg_type == "held");
    CHECK_FALSE(pair.inbox.next().value());
    CHECK_FALSE(pair.inbox.next().value());  // the end stays
}

TEST_CASE("what a shared link holds is bounded, and the error is reported", "[kernels][inbox]") {
    LinkPair pair;
    REQUIRE(pair.inbox.share());
    std::thread sender([&] {
        for (std::size_t index = 0; index <= kHeldMessagesMax; ++index) {
            (void)pair.send(Channel::kShell, "request", json::object());
        }
    });
    CHECK_FALSE(pair.inbox.divert("debug_request"));
    sender.join();
    for (std::size_t index = 0; index < kHeldMessagesMax; ++index) {
        REQUIRE(pair.inbox.next().value());
    }
    CHECK(pair.inbox.next().error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("bytes that are no frame reach next through a shared link", "[kernels][inbox]") {
    LinkPair pair;
    REQUIRE(pair.inbox.share());
    REQUIRE(::send(pair.server.fd(), "\0\0\0\0", 4, 0) == 4);
    CHECK_FALSE(pair.inbox.divert("debug_request"));
    CHECK(pair.inbox.next().error().code() == ErrorCode::kProtocol);
}

}  // namespace cellkeep::kernels
