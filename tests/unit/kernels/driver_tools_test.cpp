// SPDX-License-Identifier: Apache-2.0
//
// What drivers ask of tools: the questions, their way over the link, and the lines that answer.
#include "kernels/driver/tool_question.hpp"
#include "protocol/tool_request.hpp"
#include "tests/unit/kernels/scripted_driver.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::kernels::driver {

using nlohmann::json;

namespace {

constexpr RequestRules kToolCell{.interruptible = true, .allow_tools = true};

/// Asks by this event, and is done with the line that answers as its name.
std::string asks(const std::string& event) {
    return std::string(kReady) + "read -r line <&3; echo '" + event +
           R"(' >&4; read -r line <&3
              printf '%s' "$line" | sed 's/["\\]/\\&/g; s/.*/{"event":"done","id":1,"name":"&"}\n/' >&4; )" +
           kWaitForEnd;
}

/// The line that a driver got in answer to its event.
std::string answer_to(ScriptedDriver& driver, RequestRules rules) {
    REQUIRE(driver.conversation.wait_until_ready());
    const auto done = driver.conversation.ask({{"request", "execute"}}, rules);
    REQUIRE(done);
    return (*done)["name"];
}

}  // namespace

TEST_CASE("a call of a tool goes over the link, and its answer to the driver", "[kernel][driver]") {
    ScriptedDriver driver(asks(R"({"event":"tool","name":"a.b","arguments":{"x":[1]}})"));
    driver.pair.send(
        protocol::Channel::kStdin,
        protocol::kToolReply,
        {{"status", "ok"}, {"result", {1, "two\n"}}});
    CHECK(
        answer_to(driver, kToolCell) == R"({"request":"tool","result":[1,"two\n"],"status":"ok"})");
    const protocol::Message sent = driver.pair.sent();
    CHECK(sent.channel() == protocol::Channel::kStdin);
    CHECK(sent.header().msg_type == protocol::kToolRequest);
    CHECK(sent.parse_content().value() == json{{"name", "a.b"}, {"arguments", {{"x", {1}}}}});
}

TEST_CASE("a driver is told what may be called", "[kernel][driver]") {
    ScriptedDriver driver(asks(R"({"event":"tools"})"));
    driver.pair.send(
        protocol::Channel::kStdin, protocol::kToolListReply, {{"tools", json::array()}});
    CHECK(answer_to(driver, kToolCell) == R"({"request":"tools","tools":[]})");
    CHECK(driver.pair.sent().header().msg_type == protocol::kToolListRequest);
}

TEST_CASE("an answer of another kind is none", "[kernel][driver]") {
    ScriptedDriver driver(asks(R"({"event":"tools"})"));
    driver.pair.send(protocol::Channel::kStdin, "input_reply", {{"value", "x"}});
    driver.pair.send(protocol::Channel::kStdin, protocol::kToolReply, {{"status", "ok"}});
    driver.pair.send(
        protocol::Channel::kStdin, protocol::kToolListReply, {{"tools", json::array()}});
    CHECK(answer_to(driver, kToolCell) == R"({"request":"tools","tools":[]})");
}

TEST_CASE("a request that is no cell calls no tool", "[kernel][driver]") {
    ScriptedDriver driver(asks(R"({"event":"tool","name":"a","arguments":{}})"));
    const json answer = json::parse(answer_to(driver, {.interruptible = true}));
    CHECK(answer["reason"] == kNoCaller);
    CHECK(answer["status"] == "error");
    CHECK(answer["request"] == "tool");
}

TEST_CASE("a call without its name or its arguments is a fault", "[kernel][driver]") {
    const std::string event = GENERATE(
        R"({"event":"tool"})",
        R"({"event":"tool","name":"a"})",
        R"({"event":"tool","arguments":{}})",
        R"({"event":"tool","name":"","arguments":{}})",
        R"({"event":"tool","name":1,"arguments":{}})",
        R"({"event":"tool","name":"a","arguments":[]})");
    ScriptedDriver driver(asks(event));
    REQUIRE(driver.conversation.wait_until_ready());
    CHECK_FALSE(driver.conversation.ask({{"request", "execute"}}, kToolCell));
    CHECK(begins(driver.fault(), "a call of a tool without its name or its arguments"));
}

TEST_CASE("a tool's answer is one line with all its members", "[kernel][driver]") {
    const ToolQuestion question = read_tool_question({{"event", "tools"}}).value();
    CHECK(answer_tool_question(question, "{}") == R"({"request":"tools"})");
    CHECK(answer_tool_question(question, " { } ") == R"({"request":"tools"} )");
    CHECK(
        answer_tool_question(question, "{\r\n \"a\":\n[1,\n2]\n}") ==
        R"({"request":"tools","a": [1, 2] })");
}

}  // namespace cellkeep::kernels::driver
