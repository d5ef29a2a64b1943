// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite's tools, and with them how a client is asked something in both eras.
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp::test {
namespace {

const nlohmann::json kEmpty = nlohmann::json::object();

nlohmann::json declaring(const nlohmann::json& params, const nlohmann::json& capabilities) {
    nlohmann::json all = params;
    all["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    return all;
}

const nlohmann::json kForms = {{"elicitation", nlohmann::json::object()}};

nlohmann::json accept(const nlohmann::json& content) {
    return {{"action", "accept"}, {"content", content}};
}

struct Suite {
    McpServer server{{}, WithFixtures::kYes};

    McpServer::Answer call(nlohmann::json params, const Fields& fields = {}) {
        return server.call("tools/call", declaring(params, kForms), fields);
    }
};

TEST_CASE("the conformance suite's fixtures are absent unless asked for", "[mcp][fixtures]") {
    McpServer plain;
    CHECK(plain.call("tools/list").text.find("test_") == std::string::npos);
    CHECK(plain.call("prompts/list").text.find("test_") == std::string::npos);
    CHECK(plain.call("resources/list").text.find("test:") == std::string::npos);
    CHECK(plain.call("resources/templates/list").text.find("test:") == std::string::npos);
    for (const char* tool :
         {"test_simple_text", "test_sampling", "test_elicitation", "json_schema_2020_12_tool"}) {
        const auto refused = plain.call("tools/call", {{"name", tool}});
        CHECK(refused.status == 400);
        CHECK(refused.json["error"]["code"] == -32602);
    }
    CHECK(plain.call("prompts/get", {{"name", "test_simple_prompt"}}).status == 400);
    for (const char* uri : {"test://static-text", "test://template/1/data"}) {
        CHECK(plain.call("resources/read", {{"uri", uri}}).status == 400);
    }
    Suite suite;
    CHECK(suite.server.call("tools/list").json["result"]["tools"].size() > 30);
    CHECK(suite.server.call("tools/call", {{"name", "test_simple_text"}}).status == 200);
    CHECK(suite.server.call("prompts/get", {{"name", "test_simple_prompt"}}).status == 200);
    const auto read = suite.server.call("resources/read", {{"uri", "test://template/1/data"}});
    CHECK(
        read.json["result"]["contents"][0]["text"].get<std::string>().find("\"1\"") !=
        std::string::npos);
}

TEST_CASE("a result asks, and the same request brings the answer", "[mcp][asking]") {
    Suite suite;
    const nlohmann::json request = {{"name", "test_input_required_result_request_state"}};
    const auto first = suite.call(request).json["result"];
    CHECK(first["resultType"] == "input_required");
    CHECK(first["inputRequests"]["confirm"]["method"] == "elicitation/create");
    nlohmann::json again = request;
    again["requestState"] = first["requestState"];
    again["inputResponses"] = {{"confirm", accept({{"ok", true}})}, {"unknown", 5}};
    const auto second = suite.call(again).json["result"];
    CHECK(second["resultType"] == "complete");
    CHECK(second["content"][0]["text"].get<std::string>().starts_with("state-ok"));
    // What is missing is asked for again.
    again["inputResponses"] = {{"other", accept(kEmpty)}};
    CHECK(suite.call(again).json["result"]["resultType"] == "input_required");
}

TEST_CASE("an answer to nothing that was asked is refused", "[mcp][asking]") {
    Suite suite;
    const nlohmann::json request = {{"name", "test_input_required_result_request_state"}};
    const std::string state = suite.call(request).json["result"]["requestState"];
    const auto refused = [&](const char* key, const nlohmann::json& value) {
        nlohmann::json again = request;
        again["requestState"] = state;
        again["inputResponses"] = {{"confirm", accept({{"ok", true}})}};
        again[key] = value;
        const auto answer = suite.call(again);
        CAPTURE(answer.text);
        return answer.status == 400 && answer.json["error"]["code"] == -32602;
    };
    CHECK(refused("requestState", state + "x"));
    CHECK(refused("requestState", ""));
    CHECK(refused("requestState", 5));
    CHECK(refused("requestState", nullptr));
    CHECK(refused("inputResponses", nullptr));
    CHECK(refused("inputResponses", nlohmann::json::array()));
    for (const nlohmann::json& wrong :
         {nlohmann::json(5),
          nlohmann::json(nullptr),
          kEmpty,
          nlohmann::json{{"action", "maybe"}},
          nlohmann::json{{"action", 1}},
          nlohmann::json{{"action", "accept"}},
          nlohmann::json{{"action", "accept"}, {"content", 5}}}) {
        CAPTURE(wrong);
        CHECK(refused("inputResponses", {{"confirm", wrong}}));
    }
    // The state is for this request only.
    CHECK(refused("arguments", {{"other", 1}}));
    CHECK(refused("name", "test_input_required_result_tampered_state"));
    CHECK_FALSE(refused("inputResponses", {{"confirm", {{"action", "decline"}}}}));
}

TEST_CASE("a request's state is for its principal only", "[mcp][asking]") {
    Suite suite;
    nlohmann::json request = {{"name", "test_input_required_result_request_state"}};
    request["requestState"] =
        suite.call(request, bearer(kAliceToken)).json["result"]["requestState"];
    request["inputResponses"] = {{"confirm", accept({{"ok", true}})}};
    CHECK(suite.call(request, bearer(kBobToken)).status == 400);
    CHECK(suite.call(request).status == 400);
    CHECK(suite.call(request, bearer(kAliceToken)).status == 200);
}

TEST_CASE("a client is asked only what it declares", "[mcp][asking]") {
    Suite suite;
    const auto undeclared = suite.call({{"name", "test_missing_capability"}});
    CHECK(undeclared.status == 400);
    CHECK(undeclared.json["error"]["code"] == -32021);
    CHECK(undeclared.json["error"]["data"]["requiredCapabilities"]["sampling"] == kEmpty);
    const auto some = suite.call({{"name", "test_input_required_result_capabilities"}});
    CHECK(some.json["result"]["inputRequests"].size() == 1);
    CHECK(some.json["result"]["inputRequests"].contains("user_name"));
    CHECK(
        suite.server
            .call(
                "tools/call",
                declaring({{"name", "test_missing_capability"}}, {{"sampling", kEmpty}}))
            .status == 200);
}

TEST_CASE("a client with a session is sent a request in its stream", "[mcp][asking]") {
    Suite suite;
    const std::string id = suite.server.begin("2025-11-25", {}, kForms);
    const nlohmann::json request = {
        {"name", "test_elicitation"}, {"arguments", {{"message", "Who are you?"}}}};
    const auto reply_with = [&](const nlohmann::json& reply) {
        suite.server.meanwhile = [&suite, &id, reply] {
            nlohmann::json message = reply;
            message["jsonrpc"] = "2.0";
            message["id"] = "ask_9";  // an answer to nothing changes nothing
            const Fields session = {{"Mcp-Session-Id", id}};
            CHECK(suite.server.ask("POST", message.dump(), session).status == 202);
            static int asked = 0;
            message["id"] = "ask_" + std::to_string(++asked);
            CHECK(suite.server.ask("POST", message.dump(), session).status == 202);
        };
        return suite.server.in_session(id, "tools/call", request);
    };
    const auto answered = reply_with({{"result", accept({{"username", "ada"}})}});
    REQUIRE(answered.events.size() == 2);
    CHECK(answered.events[0]["method"] == "elicitation/create");
    CHECK(answered.events[0]["params"]["message"] == "Who are you?");
    CHECK(
        answered.message()["result"]["content"][0]["text"].get<std::string>().find("ada") !=
        std::string::npos);
    for (const nlohmann::json& wrong :
         {nlohmann::json{{"error", {{"code", -1}, {"message", "no user"}}}},
          nlohmann::json{{"result", kEmpty}},
          nlohmann::json{{"result", nullptr}}}) {
        CHECK(reply_with(wrong).message()["error"]["code"] == -32603);
    }
}

TEST_CASE("a client with a session that cannot be asked is told so", "[mcp][asking]") {
    Suite suite;
    const nlohmann::json request = {
        {"name", "test_elicitation"}, {"arguments", {{"message", "x"}}}};
    const std::string mute = suite.server.begin("2025-11-25");
    CHECK(
        suite.server.in_session(mute, "tools/call", request).message()["error"]["code"] == -32021);
    const std::string id = suite.server.begin("2025-11-25", {}, kForms);
    CHECK(
        suite.server.in_session(id, "tools/call", request, {{"Accept", "application/json"}})
            .json["error"]["code"] == -32600);
    // One that goes while it is asked.
    suite.server.meanwhile = [&] {
        CHECK(suite.server.ask("DELETE", "", {{"Mcp-Session-Id", id}}).status == 204);
    };
    CHECK(suite.server.in_session(id, "tools/call", request).message()["error"]["code"] == -32603);
}

TEST_CASE("a log reaches who wants its level", "[mcp][log]") {
    Suite suite;
    const auto lines = [](const McpServer::Answer& answer) {
        std::size_t count = 0;
        for (const auto& event : answer.events) {
            count += event.value("method", "") == "notifications/message" ? 1U : 0U;
        }
        return count;
    };
    const nlohmann::json request = {{"name", "test_tool_with_logging"}};
    const auto at = [&](const nlohmann::json& level) {
        nlohmann::json params = request;
        params["_meta"]["io.modelcontextprotocol/logLevel"] = level;
        return suite.server.call("tools/call", params);
    };
    CHECK(lines(suite.server.call("tools/call", request)) == 0);
    CHECK(lines(at("info")) == 3);
    CHECK(lines(at("warning")) == 0);
    CHECK(at("loud").status == 400);
    CHECK(at(5).status == 400);
    const std::string id = suite.server.begin("2025-11-25");
    CHECK(lines(suite.server.in_session(id, "tools/call", request)) == 0);
    CHECK(
        suite.server.in_session(id, "logging/setLevel", {{"level", "debug"}}).json["result"] ==
        kEmpty);
    CHECK(lines(suite.server.in_session(id, "tools/call", request)) == 3);
    for (const nlohmann::json& wrong :
         {kEmpty, nlohmann::json{{"level", 5}}, nlohmann::json{{"level", "x"}}}) {
        CHECK(
            suite.server.in_session(id, "logging/setLevel", wrong).json["error"]["code"] == -32602);
    }
}

}  // namespace
}  // namespace cellkeep::mcp::test
