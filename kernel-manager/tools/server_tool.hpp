// SPDX-License-Identifier: Apache-2.0
//
// One tool as its server describes it. A server is not trusted: what is no tool, or too large, is
// left out, and code is shown bounded text without control characters. Pure.
#pragma once

#include "kernel-manager/tools/connection/parameter_headers.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::tools {

struct ServerTool {
    std::string name;         // as its server calls it
    std::string word;         // what code calls it, behind the server's word and a dot
    std::string digest;       // SHA-256 of name, description and schemas
    std::string description;  // what code is shown
    nlohmann::json input_schema;
    bool wraps_result = false;  // its structured result is {"result": …} for what is no object
    std::size_t bytes = 0;      // of name, description and schema
    /// Arguments that a call repeats in headers.
    std::vector<ParameterHeader> headers;
};

/// A page of a tools/list result.
struct ToolPage {
    std::vector<ServerTool> tools;
    std::vector<std::string> left_out;  // one sentence each
    std::string cursor;                 // of the next page; empty: there is none
};

/// server: the server's word. kProtocol: it is no such result.
Result<ToolPage> read_tool_page(std::string_view server, const nlohmann::json& result);

/// Finds the arguments that calls repeat in headers. A tool with a schema that is wrong in this is
/// left out.
void read_headers(ToolPage& page);

/// Adds a page to what there is: at most kServerToolsMax, kServerToolTextBytesMax, each word once.
/// Returns what was left out.
std::vector<std::string> add_tools(std::vector<ServerTool>& tools, std::vector<ServerTool> more);

/// At most bytes_max of it, whole characters, without control characters but line ends and tabs.
std::string plain_text(std::string_view text, std::size_t bytes_max);

}  // namespace cellkeep::tools
