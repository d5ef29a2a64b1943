// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/debug_requests.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using cellkeep::ErrorCode;
using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::DebugRequests;
using cellkeep::session::kDebugRequestsMax;
using cellkeep::session::make_debug_failure;
using cellkeep::session::ReplySink;
using nlohmann::json;

namespace {

class Asker final : public ReplySink {
 public:
    void deliver(const Message& message) override { answers.push_back(message); }
    std::vector<Message> answers;
};

Message debug_request(const json& content = {{"seq", 4}, {"command", "threads"}}) {
    return Message::make(
        Channel::kControl, make_header("debug_request", "s", "u"), json::object(), content);
}

Message reply_to(const Message& asked, const char* type = "debug_reply") {
    return Message::make(
        Channel::kControl,
        make_header(type, "k", "u"),
        cellkeep::protocol::to_json(asked.header()),
        {{"success", true}});
}

}  // namespace

TEST_CASE("each debug request is answered to its own asker, once", "[session][debug]") {
    DebugRequests waiting;
    const auto one = std::make_shared<Asker>();
    const auto two = std::make_shared<Asker>();
    const Message first = debug_request();
    const Message second = debug_request();
    REQUIRE(waiting.add(first, one));
    REQUIRE(waiting.add(second, two));
    waiting.answer(reply_to(second));
    CHECK(two->answers.size() == 1);
    CHECK(one->answers.empty());
    waiting.answer(reply_to(second));
    CHECK(two->answers.size() == 1);
    waiting.answer(reply_to(first, "execute_reply"));  // not what was asked
    waiting.answer(reply_to(debug_request()));         // no request has this id
    CHECK(one->answers.empty());
    CHECK(waiting.size() == 1);
    waiting.forget(first.header().msg_id);
    waiting.answer(reply_to(first));
    CHECK(one->answers.empty());
}

TEST_CASE("waiting debug requests are bounded, and one msg_id waits once", "[session][debug]") {
    DebugRequests waiting;
    const auto asker = std::make_shared<Asker>();
    const Message twice = debug_request();
    REQUIRE(waiting.add(twice, asker));
    CHECK(waiting.add(twice, asker).error().code() == ErrorCode::kConflict);
    while (waiting.size() < kDebugRequestsMax) {
        REQUIRE(waiting.add(debug_request(), asker));
    }
    CHECK(waiting.add(debug_request(), asker).error().code() == ErrorCode::kLimitExceeded);
    CHECK(waiting.take_all().size() == kDebugRequestsMax);
    CHECK(waiting.size() == 0);
}

TEST_CASE("no more is kept of a request than its answer needs", "[session][debug]") {
    DebugRequests waiting;
    const auto asker = std::make_shared<Asker>();
    REQUIRE(waiting.add(
        debug_request(
            {{"seq", 9}, {"command", "evaluate"}, {"arguments", std::string(100'000, 'x')}}),
        asker));
    const auto kept = waiting.take_all();
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].request.frame().size() < 2000);
    CHECK(kept[0].request.parse_content().value() == json{{"seq", 9}, {"command", "evaluate"}});
}

TEST_CASE("a failure is a response of both protocols, whatever was asked", "[session][debug]") {
    const json whole = make_debug_failure({{"seq", 3}, {"command", "next"}}, "It is gone.");
    CHECK(whole["type"] == "response");
    CHECK(whole["success"] == false);
    CHECK(whole["request_seq"] == 3);
    CHECK(whole["command"] == "next");
    CHECK(whole["message"] == "It is gone.");
    CHECK(whole["status"] == "error");
    CHECK(whole["traceback"].is_array());
    for (const json& asked : std::vector<json>{
             json::object(),
             {{"seq", "3"}, {"command", 1}},
             {{"seq", 1.5}},
             {{"seq", nullptr}},
             {{"command", std::string(65, 'x')}}}) {
        const json failure = make_debug_failure(asked, "no");
        CHECK(failure["request_seq"] == 0);
        CHECK(failure["command"] == "");
    }
    CHECK(make_debug_failure({{"command", std::string(64, 'x')}}, "no")["command"] != "");
}
