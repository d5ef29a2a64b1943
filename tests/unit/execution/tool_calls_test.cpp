// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/tool_calls.hpp"

#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "protocol/tool_request.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

using nlohmann::json;
using protocol::Message;

Message request_of(const json& content) {
    return Message::make(
        protocol::Channel::kStdin,
        protocol::make_header(std::string(protocol::kToolRequest), "kernel", "k"),
        json::object(),
        content);
}

Message call_of(const std::string& name, const json& arguments = json::object()) {
    return request_of({{"name", name}, {"arguments", arguments}});
}

struct CallsFixture {
    ToolCalls calls{{{"weather", "The weather.", {{"type", "object"}}}, {"a.b", "", {}}}};
    std::vector<json> told;

    std::optional<ToolCalls::Call> begin(const Message& request) {
        return calls.begin(
            request, [this](std::string_view content) { told.push_back(json::parse(content)); });
    }
    std::string refusal_of(const Message& request) {
        CHECK_FALSE(begin(request));
        REQUIRE(told.size() == 1);
        const json content = told[0];
        told.clear();
        CHECK(content["status"] == "error");
        CHECK_FALSE(content["message"].get<std::string>().empty());
        return content["reason"];
    }
};

TEST_CASE("a tool's name is words with dots between them", "[execution][tools]") {
    for (const char* name : {"a", "_", "A1", "a.b", "github.create_issue", "a.b.c9"}) {
        CAPTURE(name);
        CHECK(is_tool_name(name));
    }
    CHECK(is_tool_name(std::string(limits::kToolNameBytesMax, 'x')));
    for (const char* name :
         {"", ".", "a.", ".a", "a..b", "1a", "a.1", "a-b", "a b", "a/b", "\xc3\xa4", "a\n"}) {
        CAPTURE(name);
        CHECK_FALSE(is_tool_name(name));
    }
    CHECK_FALSE(is_tool_name(std::string(limits::kToolNameBytesMax + 1, 'x')));
}

TEST_CASE("a call waits and is answered once", "[execution][tools]") {
    CallsFixture fixture;
    const auto call = fixture.begin(call_of("weather", {{"city", "Oslo"}}));
    REQUIRE(call);
    CHECK(call->id == "tcl_1");
    CHECK(call->tool == "weather");
    CHECK(json::parse(call->arguments.text()) == json{{"city", "Oslo"}});
    CHECK(fixture.calls.waiting()->id == "tcl_1");
    CHECK(fixture.told.empty());
    REQUIRE(fixture.calls.answer("tcl_1", {{{"degrees", -3}}, {}}).has_value());
    REQUIRE(fixture.told.size() == 1);
    CHECK(fixture.told[0] == json{{"status", "ok"}, {"result", {{"degrees", -3}}}});
    CHECK_FALSE(fixture.calls.waiting());
    CHECK(fixture.calls.answer("tcl_1", {1, {}}).error().code() == ErrorCode::kConflict);
    CHECK(fixture.told.size() == 1);
}

TEST_CASE("a tool that failed says why", "[execution][tools]") {
    CallsFixture fixture;
    REQUIRE(fixture.begin(call_of("a.b")));
    REQUIRE(fixture.calls.answer("tcl_1", {nullptr, "no such city"}).has_value());
    CHECK(
        fixture.told.at(0) ==
        json{{"status", "error"}, {"reason", "failed"}, {"message", "no such city"}});
}

TEST_CASE("what is no call of a lent tool is refused at once", "[execution][tools]") {
    CallsFixture fixture;
    CHECK(fixture.refusal_of(call_of("other")) == protocol::kToolRefusedNotLent);
    CHECK(fixture.refusal_of(call_of("")) == protocol::kToolRefusedNotLent);
    CHECK(fixture.refusal_of(call_of(std::string(100'000, 'x'))) == protocol::kToolRefusedNotLent);
    CHECK(
        fixture.refusal_of(request_of({{"name", 1}, {"arguments", json::object()}})) ==
        protocol::kToolRefusedNotLent);
    CHECK(
        fixture.refusal_of(request_of({{"arguments", json::object()}})) ==
        protocol::kToolRefusedNotLent);
    CHECK(fixture.refusal_of(request_of({{"name", "weather"}})) == protocol::kToolRefusedMalformed);
    CHECK(fixture.refusal_of(call_of("weather", json::array())) == protocol::kToolRefusedMalformed);
    CHECK(
        fixture.refusal_of(
            call_of("weather", {{"x", std::string(limits::kToolRequestBytesMax, 'x')}})) ==
        protocol::kToolRefusedTooLarge);
    CHECK(fixture.begin(call_of("weather")));
}

TEST_CASE("an answer to another call changes nothing", "[execution][tools]") {
    CallsFixture fixture;
    REQUIRE(fixture.begin(call_of("weather")));
    for (const char* id :
         {"",
          "tcl_",
          "tcl_0",
          "tcl_2",
          "tcl_01",
          "tcl_1x",
          "tcl_-1",
          "1",
          "tcl_99999999999999999999"}) {
        CAPTURE(id);
        CHECK(fixture.calls.answer(id, {1, {}}).error().code() == ErrorCode::kNotFound);
    }
    CHECK(fixture.told.empty());
    CHECK(fixture.calls.answer("tcl_1", {1, {}}).has_value());
}

TEST_CASE("code that asks anew no longer waits for its first call", "[execution][tools]") {
    CallsFixture fixture;
    REQUIRE(fixture.begin(call_of("weather")));
    REQUIRE(fixture.begin(call_of("a.b"))->id == "tcl_2");
    CHECK(fixture.calls.answer("tcl_1", {1, {}}).error().code() == ErrorCode::kConflict);
    CHECK(fixture.told.empty());
    CHECK(fixture.calls.answer("tcl_2", {2, {}}).has_value());
    REQUIRE(fixture.begin(call_of("a.b")));
    fixture.calls.give_up();
    CHECK(fixture.calls.answer("tcl_3", {3, {}}).error().code() == ErrorCode::kConflict);
    CHECK(fixture.told.size() == 1);
}

TEST_CASE("a result that is too large leaves the call waiting", "[execution][tools]") {
    CallsFixture fixture;
    REQUIRE(fixture.begin(call_of("weather")));
    const std::string much(limits::kToolResultBytesMax, 'x');
    CHECK(fixture.calls.answer("tcl_1", {much, {}}).error().code() == ErrorCode::kLimitExceeded);
    CHECK(
        fixture.calls.answer("tcl_1", {nullptr, much}).error().code() == ErrorCode::kLimitExceeded);
    CHECK(fixture.told.empty());
    CHECK(fixture.calls.answer("tcl_1", {much.substr(100), {}}).has_value());
}

TEST_CASE("an execution may call tools so often", "[execution][tools]") {
    CallsFixture fixture;
    for (std::size_t i = 0; i < limits::kToolCallsMax; ++i) {
        REQUIRE(fixture.begin(call_of("a.b")));
    }
    CHECK(fixture.refusal_of(call_of("a.b")) == protocol::kToolRefusedTooMany);
}

TEST_CASE("limits::kToolListsMax: the list of tools is given so often", "[execution][tools]") {
    CallsFixture fixture;
    const std::string first = fixture.calls.list();
    for (std::size_t i = 1; i < limits::kToolListsMax; ++i) {
        REQUIRE(fixture.calls.list() == first);
    }
    CHECK(json::parse(fixture.calls.list())["reason"] == protocol::kToolRefusedTooMany);
    CHECK(fixture.begin(call_of("a.b")));  // and calls go on
}

TEST_CASE("the list has what is lent", "[execution][tools]") {
    CHECK(json::parse(ToolCalls({}).list()) == json{{"tools", json::array()}});
    CallsFixture fixture;
    const json list = json::parse(fixture.calls.list());
    REQUIRE(list["tools"].size() == 2);
    CHECK(
        list["tools"][0] == json{
                                {"name", "weather"},
                                {"description", "The weather."},
                                {"input_schema", {{"type", "object"}}}});
}

/// An operator's tool "op.read", whose calls the test answers.
class FakeOperatorTools : public OperatorTools {
 public:
    struct Asked {
        ToolCaller caller;
        std::string arguments;
        Hooks hooks;
        std::weak_ptr<int> waits;
    };
    std::string list(const ToolCaller& caller) override {
        return caller.principal == "analyst" ? R"({"name":"op.read"})" : "";
    }
    bool offers(const ToolCaller& caller, std::string_view name) const override {
        return caller.principal == "analyst" && (name == "op.read" || name == "weather");
    }
    std::shared_ptr<void> call(
        const ToolCaller& caller,
        const std::string& /*name*/,
        protocol::RawJson arguments,
        Hooks hooks) override {
        const auto waits = std::make_shared<int>();
        asked.push_back({caller, std::string(arguments.text()), std::move(hooks), waits});
        return waits;
    }
    std::vector<Asked> asked;
};

struct OperatorFixture {
    explicit OperatorFixture(const std::string& principal = "analyst")
        : calls(
              {{"weather", "The weather.", {}}},
              {tools, {"ses_1", "exe_1", principal}},
              {.on_held = [this](const ToolCalls::Call& call) { held.push_back(call.approval); },
               .on_done =
                   [this](const ToolCalls::Call& call, const ToolOutcome& outcome) {
                       done.push_back(call.id + (outcome.failed ? " failed" : " ok"));
                   }}) {}
    std::optional<ToolCalls::Call> begin(const std::string& name) {
        return calls.begin(call_of(name, {{"a", 1}}), [this](std::string_view content) {
            told.emplace_back(content);
        });
    }
    std::shared_ptr<FakeOperatorTools> tools = std::make_shared<FakeOperatorTools>();
    std::vector<std::string> held;
    std::vector<std::string> done;
    std::vector<std::string> told;
    ToolCalls calls;
};

TEST_CASE("a tool of the operator is called and answered by the server", "[execution][tools]") {
    OperatorFixture fixture;
    const auto call = fixture.begin("op.read");
    REQUIRE(call);
    CHECK(call->is_operators);
    REQUIRE(fixture.tools->asked.size() == 1);
    CHECK(fixture.tools->asked[0].caller.session_id == "ses_1");
    CHECK(fixture.tools->asked[0].arguments == R"({"a":1})");
    // The caller of the execution cannot answer for it.
    CHECK(fixture.calls.answer("tcl_1", {1, {}}).error().code() == ErrorCode::kConflict);
    CHECK(fixture.told.empty());
    fixture.tools->asked[0].hooks.on_done({R"({"status":"ok"})", false});
    CHECK(fixture.told == std::vector<std::string>{R"({"status":"ok"})"});
    CHECK(fixture.done == std::vector<std::string>{"tcl_1 ok"});
    CHECK_FALSE(fixture.calls.waiting());
    CHECK(fixture.tools->asked[0].waits.expired());
}

TEST_CASE("a lent tool hides one of the operator", "[execution][tools]") {
    OperatorFixture fixture;
    const auto call = fixture.begin("weather");
    REQUIRE(call);
    CHECK_FALSE(call->is_operators);
    CHECK(fixture.tools->asked.empty());
    const json list = json::parse(fixture.calls.list());
    REQUIRE(list["tools"].size() == 2);
    CHECK(list["tools"][1]["name"] == "op.read");
}

TEST_CASE("another principal has no tools of the operator", "[execution][tools]") {
    OperatorFixture fixture("other");
    CHECK_FALSE(fixture.begin("op.read"));
    CHECK(fixture.tools->asked.empty());
    REQUIRE(fixture.told.size() == 1);
    CHECK(json::parse(fixture.told[0])["reason"] == protocol::kToolRefusedNotLent);
    CHECK(json::parse(fixture.calls.list())["tools"].size() == 1);
}

TEST_CASE("code that waits no more gives the operator's call up", "[execution][tools]") {
    OperatorFixture fixture;
    REQUIRE(fixture.begin("op.read"));
    fixture.calls.give_up();
    CHECK(fixture.tools->asked[0].waits.expired());
    REQUIRE(fixture.begin("op.read"));
    REQUIRE(fixture.begin("op.read"));  // asks anew
    CHECK(fixture.tools->asked[1].waits.expired());
    CHECK_FALSE(fixture.tools->asked[2].waits.expired());
    CHECK(fixture.told.empty());
}

TEST_CASE("the time of a person who is asked is counted", "[execution][tools]") {
    OperatorFixture fixture;
    const auto now = std::chrono::steady_clock::now();
    REQUIRE(fixture.begin("op.read"));
    CHECK(fixture.calls.held_for(now + std::chrono::minutes(5)).count() == 0);
    fixture.tools->asked[0].hooks.on_held("apr_1");
    CHECK(fixture.calls.waiting()->approval == "apr_1");
    CHECK(fixture.calls.held_for(now + std::chrono::minutes(5)) > std::chrono::minutes(4));
    CHECK(fixture.calls.held_for(now + std::chrono::hours(48)) == kHeldTimeMax);
    fixture.tools->asked[0].hooks.on_approved();
    CHECK(fixture.calls.waiting()->approval.empty());
    CHECK(fixture.held == std::vector<std::string>{"apr_1", ""});
    const auto held = fixture.calls.held_for(now);
    CHECK(fixture.calls.held_for(now + std::chrono::hours(1)) == held);
    fixture.tools->asked[0].hooks.on_done({"{}", true});
    CHECK(fixture.done == std::vector<std::string>{"tcl_1 failed"});
    CHECK(fixture.calls.held_for(now + std::chrono::hours(1)) == held);
}

}  // namespace
}  // namespace cellkeep::session
