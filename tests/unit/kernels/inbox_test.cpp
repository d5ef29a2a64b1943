// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kernels/link_pair.hpp"

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

}  // namespace cellkeep::kernels
