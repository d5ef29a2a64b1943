// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/text_reading.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp::test {
namespace {

constexpr const char* kPing = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";

int code_of(const McpServer::Answer& answer) {
    return answer.json.contains("error") ? answer.json["error"]["code"].get<int>() : 0;
}

TEST_CASE("a request of 2026-07-28 stands alone", "[mcp][http]") {
    McpServer server;
    const auto discovered = server.call("server/discover");
    CHECK(discovered.status == 200);
    CHECK(discovered.headers.get("Content-Type") == "application/json");
    CHECK(discovered.headers.find("Mcp-Session-Id") == nullptr);
    const nlohmann::json& result = discovered.json["result"];
    CHECK(result["resultType"] == "complete");
    CHECK(result["supportedVersions"][0] == "2026-07-28");
    CHECK(result["supportedVersions"].size() == 4);
    CHECK(result["capabilities"].contains("tools"));
    CHECK(result["ttlMs"] > 0);
    CHECK(result["cacheScope"] == "private");
    CHECK(result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"] == "9.9");
    CHECK(discovered.json["id"] == 1);
    CHECK(server.call("tools/list").json["result"]["ttlMs"] > 0);
    const auto called = server.call("tools/call", {{"name", "list_sessions"}}).json["result"];
    CHECK(called["resultType"] == "complete");
    CHECK_FALSE(called.contains("ttlMs"));
    // A client session's id means nothing here.
    CHECK(
        server.call("tools/list", nlohmann::json::object(), {{"Mcp-Session-Id", "x"}}).status ==
        200);
}

TEST_CASE("a long message gets the answer of a short one", "[mcp][http][limits]") {
    // http::kTextReadAtOnceBytesMax: another thread reads it.
    McpServer server;
    const std::string session = server.begin("2025-11-25");
    const std::string blank(http::kTextReadAtOnceBytesMax, ' ');
    const auto ask = [&](const std::string& body) {
        return server.ask("POST", body, {{"Mcp-Session-Id", session}});
    };
    CHECK(ask(kPing + blank).json["id"] == 1);
    for (const std::string& wrong :
         {std::string("{"),
          std::string("[]"),
          std::string("1"),
          kPing + std::string("}"),
          std::string(R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})"),
          std::string(R"({"jsonrpc":"1.0","id":1,"method":"ping"})"),
          std::string(R"({"jsonrpc":"2.0","id":{},"method":"ping"})"),
          std::string(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})"),
          "\xff" + std::string(kPing)}) {
        CAPTURE(wrong);
        const auto expected = ask(wrong);
        const auto answer = ask(blank + wrong + blank);
        CHECK(expected.status == 400);
        CHECK(answer.status == 400);
        CHECK(code_of(answer) == code_of(expected));
    }
    const auto ran = server.tool("run_code", {{"code", std::string(100'000, 'x')}});
    CHECK(ran["isError"] != true);
    REQUIRE(server.backend.find("ses_1") != nullptr);
}

TEST_CASE(
    "stateless requests that are wrong get the status and code of their fault", "[mcp][http]") {
    McpServer server;
    const auto unknown = server.call("tools/missing");
    CHECK(unknown.status == 404);
    CHECK(code_of(unknown) == -32601);
    for (const char* gone :
         {"initialize",
          "ping",
          "logging/setLevel",
          "resources/subscribe",
          "resources/unsubscribe",
          "tasks/list",
          "TOOLS/LIST",
          ""}) {
        CAPTURE(gone);
        CHECK(server.call(gone).status == 404);
    }
    const auto differs =
        server.call("tools/list", nlohmann::json::object(), {{"Mcp-Method", "tools/call"}});
    CHECK(differs.status == 400);
    CHECK(code_of(differs) == -32020);
    const auto version = server.call(
        "tools/list", nlohmann::json::object(), {{"MCP-Protocol-Version", "2025-11-25"}});
    CHECK(version.status == 400);
    CHECK(code_of(version) == -32020);
    nlohmann::json old = stateless_request("tools/list", nlohmann::json::object());
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1900-01-01";
    const auto unsupported = server.ask("POST", old.dump());
    CHECK(unsupported.status == 400);
    CHECK(code_of(unsupported) == -32022);
    for (const nlohmann::json& params :
         {nlohmann::json{{"name", "missing"}},
          nlohmann::json::object(),
          nlohmann::json{{"name", 5}},
          nlohmann::json{{"name", "run_code"}, {"arguments", nlohmann::json::array()}}}) {
        CAPTURE(params);
        const auto refused = server.call("tools/call", params);
        CHECK(refused.status == 400);
        CHECK(code_of(refused) == -32602);
        CHECK(refused.json["id"] == 1);
    }
    for (const char* list : {"tools/list", "resources/list", "resources/templates/list"}) {
        CHECK(server.call(list, {{"cursor", "x"}}).status == 400);
        CHECK(server.call(list).status == 200);
    }
}

TEST_CASE("a client session begins with initialize and speaks its revision", "[mcp][http]") {
    McpServer server;
    for (const char* revision : {"2025-11-25", "2025-06-18", "2025-03-26"}) {
        const std::string id = server.begin(revision);
        CHECK(id.size() == 32);
        const auto pong = server.in_session(id, "ping");
        CHECK(pong.status == 200);
        CHECK(pong.json["result"] == nlohmann::json::object());
        CHECK(server.in_session(id, "notifications/initialized").status == 202);
        const auto tools = server.in_session(id, "tools/list").json["result"];
        CHECK(tools["tools"].size() == 12);
        CHECK_FALSE(tools.contains("resultType"));
        CHECK(server.in_session(id, "server/discover").json["error"]["code"] == -32601);
        CHECK(server.in_session(id, "missing").status == 200);  // 404 would end the session
        CHECK(server.ask("DELETE", "", {{"Mcp-Session-Id", id}}).status == 204);
        CHECK(server.in_session(id, "ping").status == 404);
    }
    const auto answer = server.in_session("", "initialize", {{"protocolVersion", "2024-11-05"}});
    CHECK(answer.json["result"]["protocolVersion"] == "2025-11-25");
    CHECK(answer.json["result"]["serverInfo"]["name"] == "cellkeep");
}

TEST_CASE("without a client session only initialize is answered", "[mcp][http]") {
    McpServer server;
    CHECK(server.ask("POST", kPing).status == 400);
    CHECK(server.in_session("unknown", "ping").status == 404);
    CHECK(server.in_session("", "notifications/initialized").status == 400);
    CHECK(server.in_session("unknown", "notifications/cancelled").status == 404);
    CHECK(server.ask("DELETE", "").status == 400);
    CHECK(server.ask("DELETE", "", {{"Mcp-Session-Id", "unknown"}}).status == 404);
    for (const nlohmann::json& params :
         {nlohmann::json::object(), nlohmann::json{{"protocolVersion", 5}}}) {
        const auto refused = server.in_session("", "initialize", params);
        CHECK(code_of(refused) == -32602);
        CHECK(refused.headers.find("Mcp-Session-Id") == nullptr);
    }
}

TEST_CASE("a client session's id works for no other principal", "[mcp][http]") {
    McpServer server;
    const std::string id = server.begin("2025-11-25", bearer(kAliceToken));
    const nlohmann::json none = nlohmann::json::object();
    CHECK(server.in_session(id, "ping", none, bearer(kAliceToken)).status == 200);
    for (const std::string& token : {kBobToken, std::string("t")}) {
        CHECK(server.in_session(id, "ping", none, bearer(token)).status == 404);
        CHECK(
            server.in_session(id, "notifications/initialized", none, bearer(token)).status == 404);
        CHECK(
            server.ask("DELETE", "", {{"Mcp-Session-Id", id}, bearer(token).front()}).status ==
            404);
    }
    CHECK(server.in_session(id, "ping", none, bearer(kAliceToken)).status == 200);
}

TEST_CASE("who may change nothing, or has no token, is not answered", "[mcp][http]") {
    McpServer server;
    const nlohmann::json none = nlohmann::json::object();
    CHECK(server.call("tools/list", none, bearer(kEveToken)).status == 403);
    CHECK(server.call("tools/list", none, bearer("wrong")).status == 401);
    const auto refused = server.call("tools/list", none, {{"Authorization", ""}});
    CHECK(refused.status == 401);
    CHECK(
        refused.headers.get("WWW-Authenticate") ==
        "Bearer realm=\"cellkeep\", "
        "resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\"");
    CHECK(server.call("tools/list").status == 200);
}

TEST_CASE("a client without a token learns what it is for", "[mcp][http]") {
    McpServer server;
    for (const char* path : {"", "/mcp"}) {
        server.target = "/.well-known/oauth-protected-resource" + std::string(path);
        const auto answer = server.ask("GET", "", {{"Authorization", ""}});
        CHECK(answer.status == 200);
        CHECK(answer.json["resource"] == "http://localhost/mcp");
        CHECK(answer.json["bearer_methods_supported"] == nlohmann::json::array({"header"}));
        const auto behind = server.ask("GET", "", {{"X-Forwarded-Proto", "https"}});
        CHECK(behind.json["resource"] == "https://localhost/mcp");
    }
    server.target = "/.well-known/oauth-authorization-server";
    CHECK(server.ask("GET", "").status == 404);
}

TEST_CASE("a page of another origin is refused, also with a token in a header", "[mcp][http]") {
    McpServer server({"https://lab.example"});
    const nlohmann::json none = nlohmann::json::object();
    for (const char* origin :
         {"https://evil.example",
          "null",
          "http://localhost.evil.example",
          "https://lab.example.evil",
          "x"}) {
        CAPTURE(origin);
        CHECK(server.call("tools/list", none, {{"Origin", origin}}).status == 403);
        const std::string id = server.begin("2025-11-25");
        CHECK(server.stream(id, {{"Origin", origin}}).status == 403);
        CHECK(server.ask("DELETE", "", {{"Mcp-Session-Id", id}, {"Origin", origin}}).status == 403);
        CHECK(server.ask("DELETE", "", {{"Mcp-Session-Id", id}}).status == 204);
    }
    for (const char* origin : {"http://localhost", "https://lab.example"}) {
        CHECK(server.call("tools/list", none, {{"Origin", origin}}).status == 200);
    }
}

TEST_CASE(
    "what is sent must be one JSON message, and what is taken JSON or events", "[mcp][http]") {
    McpServer server;
    for (const char* type : {"text/plain", "application/jsonx", ""}) {
        CHECK(server.ask("POST", kPing, {{"Content-Type", type}}).status == 415);
    }
    for (const char* accept : {"text/html", "text/event-stream;q=0, application/json;q=0"}) {
        CHECK(server.ask("POST", kPing, {{"Accept", accept}}).status == 406);
    }
    for (const char* method : {"PUT", "PATCH"}) {
        const auto refused = server.ask(method, kPing);
        CHECK(refused.status == 405);
        CHECK(refused.headers.get("Allow").find("POST") != std::string::npos);
    }
    for (const char* body : {"", "{", "[]", "5"}) {
        const auto refused = server.ask("POST", body);
        CHECK(refused.status == 400);
        CHECK(code_of(refused) < 0);
        CHECK_FALSE(refused.json.contains("id"));
    }
    const auto batch = server.ask("POST", "[" + std::string(kPing) + "]");
    CHECK(batch.status == 400);
    CHECK(code_of(batch) == -32600);
    const auto fine = server.call(
        "tools/list",
        nlohmann::json::object(),
        {{"Content-Type", "Application/JSON; charset=utf-8"}, {"Accept", "*/*"}});
    CHECK(fine.status == 200);
}

TEST_CASE("responses are no business of a stateless client", "[mcp][http]") {
    McpServer server;
    const std::string response = R"({"jsonrpc":"2.0","id":1,"result":{}})";
    CHECK(server.ask("POST", response, {{"MCP-Protocol-Version", "2026-07-28"}}).status == 400);
    const std::string id = server.begin("2025-11-25");
    CHECK(server.ask("POST", response, {{"Mcp-Session-Id", id}}).status == 202);
}

TEST_CASE("code's answer is a stream for who takes one", "[mcp][http]") {
    McpServer server;
    const nlohmann::json run = {{"name", "run_code"}, {"arguments", {{"code", "1"}}}};
    const auto streamed = server.call("tools/call", run);
    CHECK(streamed.headers.get("Content-Type") == "text/event-stream");
    CHECK(streamed.headers.get("X-Accel-Buffering") == "no");
    CHECK(streamed.text.starts_with("event: message\ndata: {"));
    CHECK(streamed.whole);
    REQUIRE(streamed.events.size() == 1);
    CHECK(streamed.events[0]["result"]["structuredContent"]["status"] == "ok");
    const auto whole = server.call("tools/call", run, {{"Accept", "application/json"}});
    CHECK(whole.headers.get("Content-Type") == "application/json");
    CHECK(whole.json["result"]["structuredContent"]["status"] == "ok");
}

TEST_CASE("clients of the oldest revision get no links", "[mcp][http]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    const auto types_in = [&](const std::string& revision) {
        const std::string id = server.begin(revision);
        server.meanwhile = [&] {
            const auto execution = session->executions.back();
            session::ExecutionResult result = session->answer_of(*execution);
            result.artifacts.emplace_back();
            result.artifacts.back().path = "a.csv";
            execution->finish(std::move(result));
        };
        const auto answer = server.in_session(
            id,
            "tools/call",
            {{"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}});
        std::vector<std::string> types;
        for (const auto& part : answer.message()["result"]["content"]) {
            types.push_back(part["type"].get<std::string>());
        }
        return types;
    };
    CHECK(types_in("2025-03-26") == std::vector<std::string>{"text"});
    CHECK(types_in("2025-06-18") == std::vector<std::string>{"text", "resource_link"});
}

TEST_CASE("a request's id is in use until it is answered", "[mcp][http]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    const std::string id = server.begin("2025-11-25");
    const nlohmann::json run = {
        {"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}};
    server.meanwhile = [&] {
        server.meanwhile = [&] {
            const auto execution = session->executions.at(0);
            execution->finish(session->answer_of(*execution));
        };
        CHECK(server.in_session(id, "ping").status == 400);
    };
    (void)server.in_session(id, "tools/call", run);
    CHECK(server.in_session(id, "ping").status == 200);
}

}  // namespace
}  // namespace cellkeep::mcp::test
