// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/debug_router.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::ok;
using cellkeep::Status;
using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using namespace cellkeep::session;
using nlohmann::json;

namespace {

class DebugClient : public ReplySink {
 public:
    void deliver(const Message& message) override { replies.push_back(message); }
    json content() const { return replies.back().parse_content().value(); }
    std::vector<Message> replies;
};

/// A kernel that keeps the messages that it gets.
struct DebugFixture {
    ServerMessages messages{"fake"};
    Status debugger = ok();
    Status link = ok();
    std::vector<Message> sent;
    std::vector<std::string> published;
    DebugRouter router{
        {.messages = [this]() -> const ServerMessages& { return messages; },
         .publish =
             [this](Message message) {
                 published.push_back(message.parse_content().value().value("execution_state", "?"));
             },
         .repeat_busy = [this] { published.emplace_back("repeat"); },
         .check_debugger = [this] { return debugger; },
         .send =
             [this](const Message& message) {
                 if (link.has_value()) {
                     sent.push_back(message);
                 }
                 return link;
             }}};
    std::shared_ptr<DebugClient> client = std::make_shared<DebugClient>();

    Message ask() {
        Message request = Message::make(
            Channel::kControl,
            make_header("debug_request", "client", "user"),
            json::object(),
            {{"type", "request"}, {"seq", 5}, {"command", "initialize"}});
        router.submit(request, client);
        return request;
    }
    using Statuses = std::vector<std::string>;
};

Message debug_reply_to(const Message& request) {
    return Message::make(
        Channel::kControl,
        make_header("debug_reply", "kernel", "user"),
        cellkeep::protocol::to_json(request.header()),
        {{"type", "response"}, {"success", true}});
}

}  // namespace

TEST_CASE("a debug request goes to the kernel and its reply to the client", "[session][debug]") {
    DebugFixture fixture;
    const Message request = fixture.ask();
    CHECK(fixture.sent.size() == 1);
    CHECK(fixture.published.empty());  // the kernel says busy and idle itself
    CHECK(fixture.router.size() == 1);
    fixture.router.on_reply(debug_reply_to(request));
    REQUIRE(fixture.client->replies.size() == 1);
    CHECK(fixture.client->content()["success"] == true);
    CHECK(fixture.router.size() == 0);
    fixture.router.on_reply(debug_reply_to(request));  // a second reply is dropped
    CHECK(fixture.client->replies.size() == 1);
}

TEST_CASE("without a debugger the client gets a failed response", "[session][debug]") {
    DebugFixture fixture;
    fixture.debugger = Error(ErrorCode::kUnavailable, "This kernel has no debugger.");
    fixture.ask();
    CHECK(fixture.sent.empty());
    CHECK(fixture.router.size() == 0);
    REQUIRE(fixture.client->replies.size() == 1);
    CHECK(fixture.client->content()["success"] == false);
    CHECK(fixture.client->content()["request_seq"] == 5);
    CHECK(fixture.client->content()["message"] == "This kernel has no debugger.");
    CHECK(fixture.published == DebugFixture::Statuses{"busy", "idle", "repeat"});
}

TEST_CASE("a debug request that cannot be sent fails and is forgotten", "[session][debug]") {
    DebugFixture fixture;
    fixture.link = Error(ErrorCode::kLimitExceeded, "link: full");
    fixture.ask();
    CHECK(fixture.router.size() == 0);
    REQUIRE(fixture.client->replies.size() == 1);
    CHECK(fixture.client->content()["message"] == "link: full");
    fixture.router.fail_all("It is gone.");
    CHECK(fixture.client->replies.size() == 1);
}

TEST_CASE("debug requests past the bound fail at once", "[session][debug]") {
    DebugFixture fixture;
    for (std::size_t i = 0; i < kDebugRequestsMax; ++i) {
        fixture.ask();
    }
    CHECK(fixture.client->replies.empty());
    fixture.ask();
    CHECK(fixture.client->replies.size() == 1);
    CHECK(fixture.sent.size() == kDebugRequestsMax);
}

TEST_CASE("a kernel that dies leaves each debug request one answer", "[session][debug]") {
    DebugFixture fixture;
    const Message first = fixture.ask();
    fixture.ask();
    fixture.router.on_reply(debug_reply_to(first));
    fixture.router.fail_all("It is gone.");
    REQUIRE(fixture.client->replies.size() == 2);
    CHECK(fixture.client->content()["success"] == false);
    CHECK(fixture.client->content()["message"] == "It is gone.");
    CHECK(fixture.router.size() == 0);
}
