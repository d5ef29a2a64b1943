// SPDX-License-Identifier: Apache-2.0
//
// The operator's file of tool servers, in the form that other MCP clients read:
// {"mcpServers": {"github": {"command": "npx", "args": […], "env": {…}}, "docs": {"url":
// "https://…", "headers": {…}}}}. ${NAME} and ${NAME:-default} in its texts stand for variables of
// this process. "cellkeep" in a server holds its rules (governance/tool_rules.hpp) and "timeout_s".
// Members that are not known here are left to other clients.
#pragma once

#include "kernel-manager/egress/target.hpp"
#include "kernel-manager/governance/tool_rules.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cellkeep::tools {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// A program that speaks over its stdin and stdout. It runs as the server's own user, outside every
/// sandbox, because the operator named it.
struct ProgramPlace {
    std::string command;
    std::vector<std::string> arguments;
    NamedTexts variables;   // besides those of kInheritedVariables
    std::string directory;  // empty: the server's own
};

/// A server over HTTP.
struct UrlPlace {
    egress::Authority authority;
    bool tls = true;
    std::string target;  // path and query
    NamedTexts headers;
};

struct ServerEntry {
    std::string name;  // as in the file
    std::string word;  // what code calls it
    std::variant<ProgramPlace, UrlPlace> place;
    std::chrono::milliseconds patience{0};  // of one call
    governance::ToolRules rules;
    /// A digest of all but the values of variables and headers.
    std::string identity;
    /// What must not come back in an answer: headers, and variables that look secret.
    std::vector<std::string> secrets;
};

/// A letter or underscore first, then letters, digits and underscores: anything else becomes an
/// underscore.
std::string word_of(std::string_view name);

using FindVariable = std::function<std::optional<std::string>(const std::string& name)>;

/// kInvalidArgument names the server and the member, and never a value.
Result<std::vector<ServerEntry>> parse_servers(std::string_view text, const FindVariable& find);
/// The file must be a regular file of this user or of root that nobody else can write: it names
/// programs that run as this user.
Result<std::vector<ServerEntry>> load_servers(const std::string& path);

}  // namespace cellkeep::tools
