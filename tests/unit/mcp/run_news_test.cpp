// SPDX-License-Identifier: Apache-2.0
//
// What clients learn of a run beside its answer: the log, and its output as a resource.
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/run_answer.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>

namespace cellkeep::mcp::test {
namespace {

TEST_CASE("who hears the log is told when variables are lost", "[mcp][run]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    const auto events_at = [&](const nlohmann::json& level, bool kept) {
        server.meanwhile = [&session, kept] {
            const auto execution = session->executions.back();
            session::ExecutionResult result = session->answer_of(*execution);
            result.state_kept = kept;
            execution->finish(std::move(result));
        };
        nlohmann::json params = {
            {"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}};
        if (!level.is_null()) {
            params["_meta"]["io.modelcontextprotocol/logLevel"] = level;
        }
        return server.call("tools/call", params).events;
    };
    const auto told = events_at("warning", false);
    REQUIRE(told.size() == 2);
    CHECK(told[0]["method"] == "notifications/message");
    CHECK(told[0]["params"]["level"] == "warning");
    CHECK(told[0]["params"]["data"]["session"] == "ses_1");
    CHECK(events_at("warning", true).size() == 1);
    CHECK(events_at("error", false).size() == 1);
    CHECK(events_at(nullptr, false).size() == 1);
}

TEST_CASE("what a run says can be read while it runs and after it", "[mcp][run]") {
    boost::asio::io_context io;
    session::Execution execution(io, {});
    CHECK(output_text(execution).empty());
    execution.add_event("stdout", protocol::TextPieces(std::string(R"({"text":"out\n"})")));
    execution.add_event("stderr", protocol::TextPieces(std::string(R"({"text":"err"})")));
    CHECK(output_text(execution) == "out\n[stderr]\nerr");
    session::ExecutionResult result;
    result.stdout_text = std::string(kTextHeadBytes + kTextTailBytes + 1, 'x');
    execution.finish(std::move(result));
    CHECK(output_text(execution).find("bytes omitted") != std::string::npos);
}

}  // namespace
}  // namespace cellkeep::mcp::test
