// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace cellkeep::mcp::test {
namespace {

nlohmann::json listed_tools() {
    McpServer server;
    return server.call("tools/list").json["result"]["tools"];
}

nlohmann::json tool_named(const std::string& name) {
    for (const auto& tool : listed_tools()) {
        if (tool["name"] == name) {
            return tool;
        }
    }
    FAIL("there is no tool " + name);
    return nullptr;
}

TEST_CASE("every tool says what it takes, gives and does", "[mcp][tools]") {
    const auto tools = listed_tools();
    CHECK(tools.size() == 12);
    std::string before;
    for (const auto& tool : tools) {
        CAPTURE(tool);
        CHECK(before < tool["name"].get<std::string>());  // the order never changes
        before = tool["name"].get<std::string>();
        CHECK_FALSE(tool["title"].get<std::string>().empty());
        CHECK_FALSE(tool["description"].get<std::string>().empty());
        CHECK(tool["inputSchema"]["type"] == "object");
        CHECK(tool["outputSchema"]["required"] == nlohmann::json::array({"state"}));
        CHECK(tool["annotations"].contains("openWorldHint"));
        const bool reads = tool["annotations"].value("readOnlyHint", false);
        CHECK(reads != tool["annotations"].contains("destructiveHint"));
    }
}

// A bound in bytes for the build without Python; tests/integration/mcp counts the tokens.
TEST_CASE("the whole list is small", "[mcp][tools]") {
    CHECK(listed_tools().dump().size() < 2000 * 4);
}

TEST_CASE("what the schemas say is what holds", "[mcp][tools]") {
    const auto property = [](const char* tool, const char* name) {
        return tool_named(tool)["inputSchema"]["properties"][name];
    };
    CHECK(property("run_code", "wait_ms")["maximum"] == kWaitMax.count());
    CHECK(property("read_output", "wait_ms")["maximum"] == kWaitMax.count());
    CHECK(
        property("run_code", "wait_ms")["description"].get<std::string>().find(
            std::to_string(kWaitDefault.count())) != std::string::npos);
    CHECK(
        property("run_code", "timeout_ms")["description"].get<std::string>().find(
            std::to_string(kRunTime.count())) != std::string::npos);
    CHECK(property("read_file", "length")["maximum"] == kReadBytesMax);
    CHECK(
        property("read_file", "length")["description"] ==
        "Default " + std::to_string(kReadBytesDefault));
    CHECK(property("checkpoint", "label")["maxLength"] == limits::kCheckpointLabelBytesMax);
    CHECK(property("run_code", "language")["enum"] == nlohmann::json::array({"python", "sql"}));
}

}  // namespace
}  // namespace cellkeep::mcp::test
