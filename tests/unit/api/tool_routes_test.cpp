// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/tool_body.hpp"
#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "protocol/tool_request.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

constexpr const char* kCall = "/v1/sessions/ses_1/executions/exe_1/tool_calls/tcl_1";
constexpr const char* kLending =
    R"({"code":"1","tools":[{"name":"weather","description":"d","input_schema":{"type":"object"}}]})";

/// A session whose execution waits for the answer to a call of a tool.
struct CallingApi {
    CallingApi() {
        session->finishes = false;
        REQUIRE(
            api.ask("POST", kExecutions, kLending, {{"Prefer", "respond-async"}}).status == 202);
        const auto request = protocol::Message::make(
            protocol::Channel::kStdin,
            protocol::make_header(std::string(protocol::kToolRequest), "k", "k"),
            nlohmann::json::object(),
            {{"name", "weather"}, {"arguments", {{"city", "Oslo"}}}});
        session->executions.at(0)->ask_tool(request, [this](std::string_view content) {
            told.push_back(nlohmann::json::parse(content));
        });
    }
    Api api;
    std::shared_ptr<session::test::FakeSession> session = api.backend.add();
    std::vector<nlohmann::json> told;
};

TEST_CASE("a call of a lent tool is seen and answered", "[agent][tools]") {
    CallingApi calling;
    CHECK(calling.session->requests.at(0).tools.at(0).name == "weather");
    const auto shown = calling.api.ask("GET", "/v1/sessions/ses_1/executions/exe_1").json;
    CHECK(shown["tool_call"]["call"] == "tcl_1");
    CHECK(shown["tool_call"]["tool"] == "weather");
    CHECK(shown["tool_call"]["arguments"]["city"] == "Oslo");
    CHECK(calling.api.ask("POST", kCall, R"({"result":null})").status == 204);
    REQUIRE(calling.told.size() == 1);
    CHECK(calling.told[0] == nlohmann::json{{"status", "ok"}, {"result", nullptr}});
    const auto again = calling.api.ask("POST", kCall, R"({"result":1})");
    CHECK(again.status == 409);
    CHECK(
        calling.api.ask("GET", "/v1/sessions/ses_1/executions/exe_1").json["tool_call"].is_null());
    CHECK(calling.told.size() == 1);
}

TEST_CASE("a tool's failure is an answer, too", "[agent][tools]") {
    CallingApi calling;
    CHECK(calling.api.ask("POST", kCall, R"({"error":"no"})").status == 204);
    CHECK(calling.told.at(0)["message"] == "no");
}

TEST_CASE("what is no answer to a call changes nothing", "[agent][tools]") {
    CallingApi calling;
    for (const char* body :
         {"{}",
          R"({"result":1,"error":"x"})",
          R"({"error":1})",
          R"({"error":null})",
          "[]",
          "1",
          R"({"result":1,"more":2})"}) {
        CAPTURE(body);
        CHECK(calling.api.ask("POST", kCall, body).status == 422);
    }
    CHECK(calling.api.ask("POST", kCall, "{").status == 400);
    CHECK(calling.api.ask("POST", kCall, "").status == 400);
    const std::string all = "/v1/sessions/ses_1/executions/exe_1/tool_calls/";
    for (const char* id : {"tcl_2", "tcl_0", "1", "x"}) {
        CAPTURE(id);
        const auto unknown = calling.api.ask("POST", all + id, R"({"result":1})");
        CHECK(unknown.status == 404);
        CHECK(unknown.json["type"] == "/problems/unknown-tool-call");
    }
    CHECK(
        calling.api
            .ask("POST", "/v1/sessions/ses_1/executions/exe_9/tool_calls/tcl_1", R"({"result":1})")
            .json["type"] == "/problems/unknown-execution");
    const std::string much =
        R"({"result":")" + std::string(limits::kToolResultBytesMax, 'x') + "\"}";
    CHECK(calling.api.ask("POST", kCall, much).status == 413);
    CHECK(calling.told.empty());
    CHECK(calling.api.ask("POST", kCall, R"({"result":1})").status == 204);
}

TEST_CASE("tools that cannot be lent are refused with their place", "[agent][tools]") {
    Api api;
    const auto session = api.backend.add();
    const std::string long_name(limits::kToolNameBytesMax + 1, 'x');
    const std::vector<std::pair<std::string, std::string>> wrong = {
        {R"("x")", "/tools"},
        {R"({"name":"a"})", "/tools"},
        {R"([1])", "/tools/0"},
        {R"([{}])", "/tools/0/name"},
        {R"([{"name":""}])", "/tools/0/name"},
        {R"([{"name":"a b"}])", "/tools/0/name"},
        {R"([{"name":"1"}])", "/tools/0/name"},
        {R"([{"name":")" + long_name + "\"}]", "/tools/0/name"},
        {R"([{"name":"a"},{"name":"a"}])", "/tools/1/name"},
        {R"([{"name":"a","description":1}])", "/tools/0/description"},
        {R"([{"name":"a","input_schema":[]}])", "/tools/0/input_schema"},
        {R"([{"name":"a","more":1}])", "/tools/0/more"}};
    for (const auto& [tools, pointer] : wrong) {
        CAPTURE(tools);
        const auto answer = api.ask("POST", kExecutions, R"({"code":"1","tools":)" + tools + "}");
        CHECK(answer.status == 422);
        CHECK(answer.json["errors"][0]["pointer"] == pointer);
    }
    nlohmann::json many = nlohmann::json::array();
    for (std::size_t i = 0; i <= limits::kToolsLentMax; ++i) {
        many.push_back({{"name", "t" + std::to_string(i)}});
    }
    const auto lend = [&](const nlohmann::json& tools) {
        return api.ask("POST", kExecutions, nlohmann::json{{"code", "1"}, {"tools", tools}}.dump())
            .status;
    };
    CHECK(lend(many) == 422);
    many.erase(many.begin());
    CHECK(lend(many) == 200);
    const std::string half(limits::kToolsBytesMax / 2, 'x');
    CHECK(lend({{{"name", "a"}, {"description", half}}}) == 200);
    CHECK(
        lend({{{"name", "a"}, {"description", half}}, {{"name", "b"}, {"description", half}}}) ==
        422);
    CHECK(session->requests.size() == 2);
}

}  // namespace
}  // namespace cellkeep::api::test
