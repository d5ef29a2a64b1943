// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "protocol/tool_request.hpp"
#include "tests/unit/kernel/run_fixture.hpp"

namespace cellkeep::session::test {
namespace {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;

struct ToolFixture : RunFixture {
    ToolFixture() { lent = {{"weather", "The weather.", {}}}; }

    void call(const Message& request, const std::string& name = "weather") const {
        kernel().say(answer(
            request,
            Channel::kStdin,
            std::string(protocol::kToolRequest),
            {{"name", name}, {"arguments", {{"city", "Oslo"}}}}));
    }
    /// What the kernel was sent last.
    json last_content() const { return kernel().sent.back().parse_content().value(); }
    std::vector<std::string> events() const {
        std::vector<std::string> types;
        for (std::uint64_t at = 0;;) {
            const auto next = execution->events().after(at);
            if (!next.event) {
                return types;
            }
            at = next.event->sequence;
            types.push_back(next.event->type);
        }
    }
};

TEST_CASE("a call goes to the caller, and its answer to the code", "[session][run]") {
    ToolFixture fixture;
    const Message request = fixture.begin_execution();
    fixture.say_busy(request);
    const std::size_t sent = fixture.kernel().sent.size();
    fixture.call(request);
    CHECK(fixture.kernel().sent.size() == sent);
    REQUIRE(fixture.execution->waiting_tool_call());
    CHECK(fixture.events().back() == "tool_call");
    REQUIRE(fixture.execution->answer_tool_call("tcl_1", {json(-3), {}}).has_value());
    REQUIRE(fixture.kernel().sent.size() == sent + 1);
    const Message& reply = fixture.kernel().sent.back();
    CHECK(reply.channel() == Channel::kStdin);
    CHECK(reply.header().msg_type == protocol::kToolReply);
    CHECK(fixture.last_content() == json{{"status", "ok"}, {"result", -3}});
    CHECK(fixture.events().back() == "tool_result");
    CHECK_FALSE(fixture.execution->waiting_tool_call());
}

TEST_CASE("a tool that was not lent is refused by the server", "[session][run]") {
    ToolFixture fixture;
    const Message request = fixture.begin_execution();
    fixture.say_busy(request);
    const auto before = fixture.events();
    fixture.call(request, "other");
    CHECK(fixture.last_content()["reason"] == protocol::kToolRefusedNotLent);
    CHECK(fixture.events() == before);
    fixture.kernel().say(
        answer(request, Channel::kStdin, std::string(protocol::kToolListRequest), json::object()));
    CHECK(fixture.kernel().sent.back().header().msg_type == protocol::kToolListReply);
    CHECK(fixture.last_content()["tools"][0]["name"] == "weather");
}

TEST_CASE("a Jupyter client's cell has no tools, and is told so", "[session][run]") {
    ToolFixture fixture;
    const Message request = fixture.begin();
    fixture.say_busy(request);
    fixture.call(request);
    CHECK(fixture.last_content()["reason"] == protocol::kToolRefusedNotLent);
    CHECK(fixture.client->delivered.empty());
    fixture.kernel().say(
        answer(request, Channel::kStdin, std::string(protocol::kToolListRequest), json::object()));
    CHECK(fixture.last_content()["tools"].empty());
}

TEST_CASE("a call when nothing runs is heard by nobody", "[session][run]") {
    ToolFixture fixture;
    const Message request = fixture.begin_execution();
    fixture.say_busy(request);
    fixture.reply(request);
    fixture.say_idle(request);
    const std::size_t sent = fixture.kernel().sent.size();
    fixture.call(request);
    CHECK(fixture.kernel().sent.size() == sent);
    CHECK_FALSE(fixture.execution->waiting_tool_call());
}

TEST_CASE("an answer that comes when the run is over is refused", "[session][run]") {
    ToolFixture fixture;
    const Message request = fixture.begin_execution();
    fixture.say_busy(request);
    fixture.call(request);
    const std::size_t sent = fixture.kernel().sent.size();
    SECTION("it has ended") {
        fixture.reply(request);
        fixture.say_idle(request);
    }
    SECTION("its interpreter has died") {
        fixture.die();
    }
    CHECK(
        fixture.execution->answer_tool_call("tcl_1", {json(1), {}}).error().code() ==
        ErrorCode::kConflict);
    CHECK(fixture.kernel().sent.size() == sent);
}

}  // namespace
}  // namespace cellkeep::session::test
