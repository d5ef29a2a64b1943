// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/wire/header_check.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::mcp {
namespace {

using Sent = std::vector<std::pair<std::string, std::string>>;

const Message& tool_call(const std::string& name = "run_code") {
    static Message message;
    message = {MessageKind::kRequest, 9, "tools/call", {{"name", name}}};
    return message;
}

bool passes(const Sent& sent, const Message& message) {
    http::Headers headers;
    for (const auto& [name, value] : sent) {
        headers.add(name, value);
    }
    const auto error = check_headers(headers, message);
    if (error) {
        CHECK(error->code == RpcCode::kHeaderMismatch);
        CHECK(error->id == 9);
    }
    return !error;
}

Sent right_headers() {
    return {
        {"MCP-Protocol-Version", "2026-07-28"},
        {"Mcp-Method", "tools/call"},
        {"Mcp-Name", "run_code"}};
}

Sent with(const std::string& name, const std::string& value) {
    Sent sent = right_headers();
    for (auto& field : sent) {
        if (field.first == name) {
            field.second = value;
        }
    }
    return sent;
}

TEST_CASE("headers that repeat the body pass", "[mcp][headers]") {
    CHECK(passes(right_headers(), tool_call()));
    CHECK(passes(
        {{"mcp-protocol-version", "2026-07-28"},
         {"MCP-METHOD", " tools/call "},
         {"mcp-name", "run_code"}},
        tool_call()));
    CHECK(passes(with("Mcp-Name", "=?base64?cnVuX2NvZGU=?="), tool_call()));
    CHECK(passes(with("Mcp-Name", "=?base64?w6Q=?="), tool_call("\u00e4")));
    const Message list{MessageKind::kRequest, 9, "tools/list", nlohmann::json::object()};
    CHECK(passes(with("Mcp-Method", "tools/list"), list));  // it has no name to repeat
    const Message read{MessageKind::kRequest, 9, "resources/read", {{"uri", "cellkeep://a"}}};
    CHECK(passes(
        {{"MCP-Protocol-Version", "2026-07-28"},
         {"Mcp-Method", "resources/read"},
         {"Mcp-Name", "cellkeep://a"}},
        read));
}

TEST_CASE("headers that differ from the body, or are not there, are refused", "[mcp][headers]") {
    CHECK_FALSE(passes({}, tool_call()));
    for (std::size_t missing = 0; missing < 3; ++missing) {
        Sent sent = right_headers();
        sent.erase(sent.begin() + static_cast<std::ptrdiff_t>(missing));
        CHECK_FALSE(passes(sent, tool_call()));
    }
    for (std::size_t twice = 0; twice < 3; ++twice) {
        Sent sent = right_headers();
        sent.push_back(sent[twice]);
        CHECK_FALSE(passes(sent, tool_call()));
    }
    for (const char* version : {"", "2025-11-25", "2026-07-28, 2026-07-28", "2026"}) {
        CHECK_FALSE(passes(with("MCP-Protocol-Version", version), tool_call()));
    }
    for (const char* method : {"", "tools/list", "TOOLS/CALL", "tools/call,tools/list"}) {
        CHECK_FALSE(passes(with("Mcp-Method", method), tool_call()));
    }
    for (const char* name :
         {"",
          "read_file",
          "RUN_CODE",
          "=?base64?cnVuX2NvZGU?=",
          "=?base64?!!?=",
          "=?base64?"
          "?=",
          "=?base64?cmVhZF9maWxl?=",
          "=?BASE64?cnVuX2NvZGU=?="}) {
        CAPTURE(name);
        CHECK_FALSE(passes(with("Mcp-Name", name), tool_call()));
    }
}

TEST_CASE("a name that is no text is left to the method", "[mcp][headers]") {
    const Message nameless{MessageKind::kRequest, 9, "tools/call", {{"name", 5}}};
    CHECK(passes(right_headers(), nameless));
}

}  // namespace
}  // namespace cellkeep::mcp
