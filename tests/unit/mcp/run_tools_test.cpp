// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/run_answer.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp::test {
namespace {

using session::ExecutionStatus;

std::string text_of(const nlohmann::json& result) {
    return result["content"][0]["text"].get<std::string>();
}

TEST_CASE("code runs in the session of its name, which is made once", "[mcp][run]") {
    McpServer server;
    const auto first = server.tool("run_code", {{"code", "1"}, {"session", "work"}});
    CHECK(first["isError"] == false);
    const nlohmann::json& told = first["structuredContent"];
    CHECK(told["state"] == "kept");
    CHECK(told["status"] == "ok");
    CHECK(told["session"] == "work");
    CHECK(told["session_created"] == true);
    CHECK(told["stdout"] == nlohmann::json{{"text", "out"}, {"bytes", 3}, {"omitted_bytes", 0}});
    CHECK(text_of(first).starts_with("out\n[ok · state kept · session work (new) · exe_1 · "));
    const auto second = server.tool("run_code", {{"code", "2"}, {"session", "work"}});
    CHECK_FALSE(second["structuredContent"].contains("session_created"));
    REQUIRE(server.backend.sessions.size() == 1);
    const auto& session = server.backend.sessions[0];
    REQUIRE(session->requests.size() == 2);
    CHECK(session->requests[1].code == "2");
    CHECK(session->requests[1].stdin_text.empty());
    CHECK(server.backend.asked[0].owner == "admin");
    CHECK(server.backend.asked[0].language == "python");
    CHECK(server.backend.asked[0].metadata["mcp_session"] == "work");
}

TEST_CASE("language, timeout and stdin go with the code", "[mcp][run]") {
    McpServer server;
    (void)server.tool(
        "run_code",
        {{"code", "1"}, {"language", "sql"}, {"timeout_ms", 5}, {"stdin", "x"}, {"wait_ms", 0}});
    const auto& request = server.backend.sessions[0]->requests[0];
    CHECK(server.backend.asked[0].language == "sql");
    CHECK(request.language == "sql");
    CHECK(request.timeout == std::chrono::milliseconds(5));
    CHECK(request.stdin_text == "x");
}

TEST_CASE("a run that names no time has kRunTime, or its session's", "[mcp][run]") {
    McpServer server;
    (void)server.tool("run_code", {{"code", "1"}, {"session", "own"}});
    CHECK(server.backend.sessions.at(0)->requests.at(0).timeout == kRunTime);
    // One that another front end has made, with the limits of an agent's.
    const auto other = server.backend.add();
    (void)server.tool("run_code", {{"code", "1"}, {"session", other->id()}});
    CHECK(other->requests.at(0).timeout == session::SessionLimits().wall);
    REQUIRE(session::SessionLimits().wall < kRunTime);
}

TEST_CASE("arguments that are wrong run nothing and say so", "[mcp][run]") {
    McpServer server;
    for (const nlohmann::json& wrong :
         {nlohmann::json::object(),
          nlohmann::json{{"code", 5}},
          nlohmann::json{{"code", "1"}, {"language", "cobol"}},
          nlohmann::json{{"code", "1"}, {"timeout_ms", 0}},
          nlohmann::json{{"code", "1"}, {"wait_ms", kWaitMax.count() + 1}},
          nlohmann::json{{"code", "1"}, {"wait", 1}},
          nlohmann::json{{"code", "1"}, {"session", ""}},
          nlohmann::json{{"code", "1"}, {"session", "a b"}},
          nlohmann::json{{"code", "1"}, {"session", "../x"}}}) {
        CAPTURE(wrong);
        const auto result = server.tool("run_code", wrong);
        CHECK(result["isError"] == true);
        CHECK(result["structuredContent"]["error"]["kind"] == "invalid_argument");
        CHECK(result["structuredContent"]["state"] == "kept");
    }
    CHECK(server.backend.sessions.empty());
    CHECK(
        server.tool("run_code", {{"code", "1"}, {"wait_ms", kWaitMax.count()}})["isError"] ==
        false);
}

TEST_CASE("a session that cannot be made is a refusal with its hint", "[mcp][run]") {
    McpServer server;
    server.backend.failure = Error(ErrorCode::kLimitExceeded, "too many sessions", "close one");
    const auto result = server.tool("run_code", {{"code", "1"}});
    CHECK(result["isError"] == true);
    CHECK(
        result["structuredContent"]["error"] ==
        nlohmann::json{
            {"kind", "limit_exceeded"}, {"message", "too many sessions"}, {"hint", "close one"}});
    server.backend.failure.reset();
    CHECK(server.tool("run_code", {{"code", "1"}})["structuredContent"]["session_created"] == true);
}

TEST_CASE("a run that takes longer than wait_ms is read on", "[mcp][run]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    const auto begun =
        server.tool("run_code", {{"code", "1"}, {"session", "ses_1"}, {"wait_ms", 0}});
    CHECK(begun["isError"] == false);
    CHECK(begun["structuredContent"]["status"] == "running");
    CHECK(begun["structuredContent"]["execution_id"] == "exe_1");
    const auto execution = session->executions.at(0);
    execution->add_event("stdout", protocol::TextPieces(R"({"text":"a\n"})"));
    execution->add_event("stderr", protocol::TextPieces(R"({"text":"b"})"));
    const nlohmann::json which = {
        {"execution_id", "exe_1"}, {"session", "ses_1"}, {"wait_ms", 0}, {"cursor", 0}};
    const auto more = server.tool("read_output", which);
    CHECK(more["structuredContent"]["stdout"]["text"] == "a\n");
    CHECK(more["structuredContent"]["stderr"]["text"] == "b");
    nlohmann::json after = which;
    after["cursor"] = more["structuredContent"]["cursor"];
    CHECK(server.tool("read_output", after)["structuredContent"]["stdout"]["text"] == "");
    after["wait_ms"] = 60'000;
    server.meanwhile = [&] { execution->finish(session->answer_of(*execution)); };
    const auto ended = server.tool("read_output", after);
    CHECK(ended["structuredContent"]["status"] == "ok");
    CHECK(ended["structuredContent"]["stdout"]["text"] == "out");
    CHECK(session->interrupts == 0);
}

TEST_CASE("what is not there is not read on", "[mcp][run]") {
    McpServer server;
    (void)server.backend.add();
    for (const nlohmann::json& wrong :
         {nlohmann::json{{"execution_id", "exe_9"}, {"session", "ses_1"}},
          nlohmann::json{{"execution_id", ""}, {"session", "ses_1"}},
          nlohmann::json{{"execution_id", "exe_1"}},
          nlohmann::json{{"execution_id", "exe_1"}, {"session", "ses_2"}},
          nlohmann::json{{"session", "ses_1"}},
          nlohmann::json{{"execution_id", "exe_1"}, {"session", "ses_1"}, {"cursor", -1}}}) {
        CAPTURE(wrong);
        CHECK(server.tool("read_output", wrong)["isError"] == true);
    }
}

TEST_CASE("a run that fails is an error with its reason and hint", "[mcp][run]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    server.meanwhile = [&] {
        const auto execution = session->executions.at(0);
        session::ExecutionResult result = session->answer_of(*execution);
        result.status = ExecutionStatus::kOom;
        result.state_kept = false;
        result.error = session::ExecutionError{};
        result.error->kind = "oom";
        result.error->name = "MemoryError";
        result.error->message = "too much";
        result.error->hint = "Use less.";
        execution->finish(std::move(result));
    };
    const auto result = server.tool("run_code", {{"code", "1"}, {"session", "ses_1"}});
    CHECK(result["isError"] == true);
    const nlohmann::json& told = result["structuredContent"];
    CHECK(told["state"] == "lost");
    CHECK(told["status"] == "oom");
    CHECK(told["error"]["kind"] == "oom");
    CHECK(told["error"]["hint"] == "Use less.");
    CHECK(
        text_of(result).find("[error oom]\nMemoryError: too much\nhint: Use less.") !=
        std::string::npos);
    CHECK(text_of(result).find("Its variables are gone.") != std::string::npos);
}

TEST_CASE("a client that goes has its run interrupted", "[mcp][run]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    server.client_goes = true;
    // Asked for as JSON alone, and as a stream.
    for (const char* accept : {"application/json", "application/json, text/event-stream"}) {
        const int before = session->interrupts;
        server.client_goes = true;
        (void)server.call(
            "tools/call",
            {{"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}},
            {{"Accept", accept}});
        CHECK(session->interrupts == before + 1);
    }
}

TEST_CASE("a client that goes while it reads a run on leaves the run alone", "[mcp][run]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    (void)server.tool("run_code", {{"code", "1"}, {"session", "ses_1"}, {"wait_ms", 0}});
    const nlohmann::json read = {
        {"name", "read_output"}, {"arguments", {{"execution_id", "exe_1"}, {"session", "ses_1"}}}};
    for (const char* accept : {"application/json", "application/json, text/event-stream"}) {
        server.client_goes = true;
        (void)server.call("tools/call", read, {{"Accept", accept}});
    }
    const std::string id = server.begin("2025-06-18");
    server.meanwhile = [&] {
        (void)server.in_session(id, "notifications/cancelled", {{"requestId", 7}});
    };
    (void)server.in_session(id, "tools/call", read);
    CHECK(session->interrupts == 0);
    CHECK_FALSE(session->executions.at(0)->result());
    (void)server.tool("interrupt", {{"session", "ses_1"}});
    CHECK(session->interrupts == 1);
}

TEST_CASE("a client session's connection that breaks ends nothing", "[mcp][run]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    const std::string id = server.begin("2025-11-25");
    server.client_goes = true;
    server.meanwhile = [&] {
        const auto execution = session->executions.at(0);
        CHECK(session->interrupts == 0);
        execution->finish(session->answer_of(*execution));
    };
    const auto answer = server.in_session(
        id,
        "tools/call",
        {{"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}});
    CHECK_FALSE(answer.whole);
    CHECK(session->interrupts == 0);
    const auto read = server.in_session(
        id,
        "tools/call",
        {{"name", "read_output"},
         {"arguments", {{"execution_id", "exe_1"}, {"session", "ses_1"}}}});
    CHECK(read.message()["result"]["structuredContent"]["status"] == "ok");
}

TEST_CASE("a notification interrupts the run of the request that it names", "[mcp][run]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    const std::string id = server.begin("2025-06-18");
    const nlohmann::json run = {
        {"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}};
    server.meanwhile = [&] {
        // ask() runs the loop, so the notification is given to a server of its own turn.
        (void)server.in_session(id, "notifications/cancelled", {{"requestId", 7}});
    };
    (void)server.in_session(id, "tools/call", run);
    CHECK(session->interrupts == 1);
}

TEST_CASE("what the code wrote is shown with head, tail and count of bytes", "[mcp][run]") {
    session::Execution::Order order;
    order.id = "exe_1";
    boost::asio::io_context io;
    session::Execution execution(io, order);
    execution.mark_started();
    session::ExecutionResult result;
    result.stdout_text = "begin" + std::string(kTextHeadBytes + kTextTailBytes, 'x') + "end";
    result.truncated["stdout"] = {result.stdout_text.size(), 1'000'000, "out.txt", ""};
    result.stderr_text = "warning";
    execution.finish(std::move(result));
    const ToolAnswer answer =
        finished_answer({"work", "ses_1", State::kKept, "", false}, execution);
    const nlohmann::json& out = answer.structured["stdout"];
    CHECK(out["bytes"] == 1'000'000);
    CHECK(out["saved_to"] == "out.txt");
    CHECK(out["omitted_bytes"].get<std::size_t>() > 900'000);
    const std::string text = out["text"].get<std::string>();
    CHECK(text.starts_with("begin"));
    CHECK(text.ends_with("end"));
    CHECK(text.find("the whole is in out.txt") != std::string::npos);
    CHECK(answer.content.back()["type"] == "resource_link");
    CHECK(answer.content.back()["uri"] == "cellkeep://sessions/ses_1/files/out.txt");
    CHECK(
        answer.content[0]["text"].get<std::string>().find("[stderr]\nwarning") !=
        std::string::npos);
}

TEST_CASE("of a traceback the last kTracebackLinesMax lines are shown", "[mcp][run]") {
    session::Execution::Order order;
    order.id = "exe_1";
    boost::asio::io_context io;
    const auto text_with = [&](std::size_t lines) {
        session::Execution execution(io, order);
        execution.mark_started();
        session::ExecutionResult result;
        result.status = ExecutionStatus::kError;
        result.error = session::ExecutionError{};
        for (std::size_t i = 0; i < lines; ++i) {
            result.error->traceback.push_back("line " + std::to_string(i) + ".");
        }
        execution.finish(std::move(result));
        const ToolAnswer answer =
            finished_answer({"work", "ses_1", State::kKept, "", false}, execution);
        return answer.content[0]["text"].get<std::string>();
    };
    CHECK(text_with(kTracebackLinesMax).find("line 0.") != std::string::npos);
    const std::string longer = text_with(kTracebackLinesMax + 1);
    CHECK(longer.find("line 0.") == std::string::npos);
    CHECK(longer.find("line 1.") != std::string::npos);
}

TEST_CASE("files that a run made are links, up to kArtifactsShownMax", "[mcp][run]") {
    session::Execution::Order order;
    order.id = "exe_1";
    boost::asio::io_context io;
    const auto links_of = [&](std::size_t count) {
        session::Execution execution(io, order);
        execution.mark_started();
        session::ExecutionResult result;
        for (std::size_t i = 0; i < count; ++i) {
            session::Artifact artifact;
            artifact.path = "a b/" + std::to_string(i) + ".csv";
            artifact.media_type = "text/csv";
            result.artifacts.push_back(artifact);
        }
        execution.finish(std::move(result));
        return finished_answer({"work", "ses_1", State::kKept, "", false}, execution);
    };
    const ToolAnswer two = links_of(2);
    REQUIRE(two.content.size() == 3);
    CHECK(two.content[1]["uri"] == "cellkeep://sessions/ses_1/files/a%20b/0.csv");
    CHECK(two.content[1]["mimeType"] == "text/csv");
    CHECK(links_of(kArtifactsShownMax).content.size() == kArtifactsShownMax + 1);
    const ToolAnswer many = links_of(kArtifactsShownMax + 1);
    CHECK(many.content.size() == kArtifactsShownMax + 1);
    CHECK(many.structured["artifacts_total"] == kArtifactsShownMax + 1);
}

TEST_CASE("new output stops at kNewOutputBytesMax and goes on there", "[mcp][run]") {
    session::EventJournal journal;
    const std::string half(kNewOutputBytesMax / 2, 'x');
    for (int i = 0; i < 3; ++i) {
        journal.append("stdout", protocol::TextPieces("{\"text\":\"" + half + "\"}"));
    }
    const NewOutput first = read_new_output(journal, 0);
    CHECK(first.stdout_text.size() == half.size());
    const NewOutput second = read_new_output(journal, first.cursor);
    CHECK(second.cursor == 2);
    const NewOutput third = read_new_output(journal, second.cursor);
    CHECK(third.stdout_text.size() == half.size());
    CHECK(read_new_output(journal, third.cursor).stdout_text.empty());
    CHECK(read_new_output(journal, 99).cursor == 99);
}

TEST_CASE("the last line is what progress repeats", "[mcp][run]") {
    CHECK(last_line({}).empty());
    CHECK(last_line({"a\nb\n", "", 0, 0}) == "b");
    CHECK(last_line({"1%\r2%\r", "", 0, 0}) == "2%");
    CHECK(last_line({"", "e\n\n  ", 0, 0}) == "e");
    CHECK(last_line({std::string(1000, 'x'), "", 0, 0}).size() == kProgressLineBytes);
}

}  // namespace
}  // namespace cellkeep::mcp::test
