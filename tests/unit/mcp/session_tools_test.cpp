// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::mcp::test {
namespace {

nlohmann::json of_session(const std::string& id) {
    return {{"session", id}};
}

TEST_CASE("sessions are listed, restarted, interrupted and closed", "[mcp][sessions]") {
    McpServer server;
    (void)server.tool("run_code", {{"code", "1"}, {"session", "work"}});
    const auto session = server.backend.sessions.at(0);
    session->finishes = false;
    (void)server.tool("run_code", {{"code", "1"}, {"session", "work"}, {"wait_ms", 0}});
    const auto listed = server.tool("list_sessions")["structuredContent"];
    REQUIRE(listed["sessions"].size() == 1);
    CHECK(listed["sessions"][0]["session"] == "work");
    CHECK(listed["sessions"][0]["session_id"] == "ses_1");
    CHECK(listed["sessions"][0]["running"] == nlohmann::json::array({"exe_2"}));
    const auto restarted = server.tool("restart", of_session("work"));
    CHECK(restarted["structuredContent"]["state"] == "lost");
    CHECK(session->restarts == 1);
    CHECK(server.tool("interrupt", of_session("work"))["structuredContent"]["state"] == "kept");
    CHECK(
        server.tool("interrupt", {{"session", "work"}, {"execution_id", "exe_2"}})["isError"] ==
        false);
    CHECK(session->interrupts == 2);
    CHECK(server.tool("restart", {{"session", "work"}, {"language", "sql"}})["isError"] == false);
    CHECK(session->named == std::vector<std::string>{"sql"});
    const auto closed = server.tool("close_session", of_session("work"));
    CHECK(closed["structuredContent"]["state"] == "lost");
    CHECK(server.backend.removed == 1);
    CHECK(server.tool("list_sessions")["structuredContent"]["total"] == 0);
}

TEST_CASE("kSessionsShownMax sessions are listed and all are counted", "[mcp][sessions]") {
    McpServer server;
    for (std::size_t i = 0; i < kSessionsShownMax; ++i) {
        (void)server.backend.add();
    }
    CHECK(
        server.tool("list_sessions")["structuredContent"]["sessions"].size() == kSessionsShownMax);
    (void)server.backend.add();
    const auto listed = server.tool("list_sessions")["structuredContent"];
    CHECK(listed["sessions"].size() == kSessionsShownMax);
    CHECK(listed["total"] == kSessionsShownMax + 1);
}

TEST_CASE("what fails in the session is told with its reason", "[mcp][sessions]") {
    McpServer server;
    const auto session = server.backend.add();
    session->failure = Error(ErrorCode::kConflict, "no kernel lives", "restart it");
    for (const char* tool : {"restart", "interrupt"}) {
        const auto refused = server.tool(tool, of_session("ses_1"));
        CHECK(refused["isError"] == true);
        CHECK(refused["structuredContent"]["error"]["kind"] == "conflict");
        CHECK(refused["structuredContent"]["error"]["hint"] == "restart it");
    }
    CHECK(server.tool("restart", {{"language", "cobol"}})["isError"] == true);
    CHECK(server.tool("close_session")["isError"] == true);
}

TEST_CASE(
    "a session that is not there is not restarted, rolled back or closed", "[mcp][sessions]") {
    McpServer server;
    for (const char* tool : {"restart", "interrupt", "close_session", "checkpoint", "list_files"}) {
        CAPTURE(tool);
        const auto refused = server.tool(tool, of_session("missing"));
        CHECK(refused["isError"] == true);
        CHECK(refused["structuredContent"]["state"] == "lost");
        CHECK(refused["structuredContent"]["error"]["kind"] == "not_found");
    }
    CHECK(
        server.tool("rollback", {{"session", "missing"}, {"checkpoint", "ckp_1"}})["isError"] ==
        true);
}

TEST_CASE("an interpreter that cannot be copied says why", "[mcp][sessions]") {
    McpServer server;
    (void)server.backend.add();
    const auto refused = server.tool("checkpoint", of_session("ses_1"));
    CHECK(refused["structuredContent"]["error"]["kind"] == "not_forkable");
    CHECK(refused["structuredContent"]["state"] == "kept");
    const auto unknown = server.tool("rollback", {{"session", "ses_1"}, {"checkpoint", "ckp_1"}});
    CHECK(unknown["structuredContent"]["error"]["kind"] == "unknown_checkpoint");
    for (const nlohmann::json& wrong :
         {nlohmann::json{{"label", ""}},
          nlohmann::json{{"label", std::string(129, 'x')}},
          nlohmann::json{{"drop_threads", "yes"}},
          nlohmann::json{{"name", "x"}}}) {
        CAPTURE(wrong);
        CHECK(
            server.tool("checkpoint", wrong)["structuredContent"]["error"]["kind"] ==
            "invalid_argument");
    }
}

TEST_CASE("a session is branched if it was begun for that", "[mcp][sessions]") {
    McpServer server;
    (void)server.tool("run_code", {{"code", "1"}, {"session", "work"}, {"branches", true}});
    CHECK(server.backend.asked.at(0).branches);
    server.backend.sessions.at(0)->edit().branches = true;
    const nlohmann::json order = {{"session", "work"}, {"name", "other"}, {"checkpoint", "ckp_1"}};
    const auto made = server.tool("branch", order)["structuredContent"];
    CHECK(made["state"] == "restored");
    CHECK(made["session"] == "other");
    CHECK(made["session_id"] == "ses_2");
    CHECK(made["branch_of"] == "ses_1");
    CHECK(made["checkpoint"] == "ckp_1");
    CHECK(server.backend.branched.at(0).session == "ses_1");
    CHECK(server.tool("run_code", {{"code", "1"}, {"session", "other"}})["isError"] == false);
    CHECK(server.backend.sessions.at(1)->requests.size() == 1);
}

TEST_CASE("what cannot be branched says why", "[mcp][sessions]") {
    McpServer server;
    (void)server.tool("run_code", {{"code", "1"}, {"session", "work"}});
    const auto kind_of = [&](const nlohmann::json& order, const Fields& fields = {}) {
        const auto refused = server.tool("branch", order, fields);
        CHECK(refused["isError"] == true);
        return refused["structuredContent"]["error"]["kind"].get<std::string>();
    };
    const nlohmann::json order = {{"session", "work"}, {"name", "b"}, {"checkpoint", "ckp_1"}};
    CHECK(kind_of(order) == "not_branchable");
    server.backend.sessions.at(0)->edit().branches = true;
    CHECK(kind_of({{"session", "missing"}, {"name", "b"}}) == "not_found");
    CHECK(kind_of({{"session", "work"}, {"name", "work"}}) == "conflict");
    CHECK(kind_of(order, bearer(kBobToken)) == "not_found");
    for (const char* wrong : {"", "a b", "ses_9", "../x"}) {
        CHECK(kind_of({{"session", "work"}, {"name", wrong}}) == "invalid_argument");
    }
    CHECK(kind_of({{"session", "work"}}) == "invalid_argument");
    // The fake has no interpreter that could be copied as it is now.
    CHECK(kind_of({{"session", "work"}, {"name", "b"}}) == "not_forkable");
    const std::vector<std::pair<ErrorCode, std::string>> failures = {
        {ErrorCode::kNotFound, "unknown_checkpoint"},
        {ErrorCode::kSystem, "not_forkable"},
        {ErrorCode::kConflict, "conflict"},
        {ErrorCode::kLimitExceeded, "limit_exceeded"}};
    for (const auto& [code, kind] : failures) {
        server.backend.failure = Error(code, "no");
        CHECK(kind_of(order) == kind);
    }
    server.backend.failure.reset();
    CHECK(server.tool("branch", order)["isError"] == false);
}

TEST_CASE("a principal's tools reach nothing of another's", "[mcp][sessions]") {
    McpServer server;
    (void)server.tool("run_code", {{"code", "1"}, {"session", "work"}}, bearer(kAliceToken));
    const auto as_bob = [&](const std::string& tool, nlohmann::json arguments) {
        return server.tool(tool, std::move(arguments), bearer(kBobToken));
    };
    for (const char* name : {"ses_1", "work"}) {
        for (const char* tool : {"restart", "interrupt", "close_session", "checkpoint"}) {
            CHECK(
                as_bob(tool, of_session(name))["structuredContent"]["error"]["kind"] ==
                "not_found");
        }
        CHECK(as_bob("read_file", {{"path", "a"}, {"session", name}})["isError"] == true);
        CHECK(
            as_bob("read_output", {{"execution_id", "exe_1"}, {"session", name}})["isError"] ==
            true);
    }
    CHECK(as_bob("run_code", {{"code", "1"}, {"session", "ses_1"}})["isError"] == true);
    CHECK(as_bob("list_sessions", nlohmann::json::object())["structuredContent"]["total"] == 0);
    CHECK(server.call("resources/list", nlohmann::json::object(), bearer(kBobToken))
              .json["result"]["resources"]
              .empty());
    CHECK(server.backend.removed == 0);
    CHECK(
        server.tool(
            "list_sessions",
            nlohmann::json::object(),
            bearer(kAliceToken))["structuredContent"]["total"] == 1);
    // The same name is another session of his.
    CHECK(as_bob("run_code", {{"code", "1"}, {"session", "work"}})["isError"] == false);
    CHECK(server.backend.sessions.size() == 2);
}

}  // namespace
}  // namespace cellkeep::mcp::test
