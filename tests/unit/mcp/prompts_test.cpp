// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/prompts.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp::test {
namespace {

std::string text_of_prompt(const std::string& name, const nlohmann::json& arguments) {
    const auto prompt = get_prompt(name, arguments);
    REQUIRE(prompt.has_value());
    return prompt.value()["messages"][0]["content"]["text"].get<std::string>();
}

TEST_CASE("prompts are listed and filled in", "[mcp][prompts]") {
    McpServer server;
    const auto listed = server.call("prompts/list").json["result"];
    REQUIRE(listed["prompts"].size() == 2);
    CHECK(listed["prompts"][0]["name"] == "analyse_csv");
    CHECK(listed["prompts"][0]["arguments"][0]["required"] == true);
    CHECK(listed["ttlMs"] > 0);
    CHECK(text_of_prompt("analyse_csv", {{"path", "a.csv"}})
              .starts_with("Analyse the file a.csv in the Cellkeep session default with"));
    CHECK(text_of_prompt("analyse_csv", {{"path", "{session}"}, {"session", "work"}})
              .starts_with("Analyse the file {session} in the Cellkeep session work with"));
    CHECK(text_of_prompt("explain_failure", {{"code", "1/0"}}).ends_with("\n\n1/0"));
    const auto got = server.call(
        "prompts/get", {{"name", "explain_failure"}, {"arguments", nlohmann::json::object()}});
    CHECK(got.json["result"]["messages"][0]["role"] == "user");
    CHECK(server.call("prompts/get", {{"name", "explain_failure"}}).status == 200);
    const std::string id = server.begin("2025-11-25");
    CHECK(server.in_session(id, "prompts/list").json["result"]["prompts"].size() == 2);
}

TEST_CASE("prompts that are not there, and wrong arguments, are refused", "[mcp][prompts]") {
    McpServer server;
    const std::string longest(kPromptArgumentBytesMax, 'x');
    for (const nlohmann::json& params :
         {nlohmann::json::object(),
          nlohmann::json{{"name", 5}},
          nlohmann::json{{"name", "missing"}},
          nlohmann::json{{"name", "analyse_csv"}},
          nlohmann::json{{"name", "analyse_csv"}, {"arguments", nlohmann::json::array()}},
          nlohmann::json{{"name", "analyse_csv"}, {"arguments", {{"path", 5}}}},
          nlohmann::json{{"name", "analyse_csv"}, {"arguments", {{"path", longest + "x"}}}},
          nlohmann::json{
              {"name", "analyse_csv"}, {"arguments", {{"path", "a"}, {"other", "b"}}}}}) {
        CAPTURE(params);
        const auto refused = server.call("prompts/get", params);
        CHECK(refused.status == 400);
        CHECK(refused.json["error"]["code"] == -32602);
    }
    CHECK(server.call("prompts/list", {{"cursor", "x"}}).status == 400);
    CHECK(get_prompt("analyse_csv", {{"path", longest}}).has_value());
}

}  // namespace
}  // namespace cellkeep::mcp::test
