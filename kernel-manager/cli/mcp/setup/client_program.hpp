// SPDX-License-Identifier: Apache-2.0
//
// The agents' programs that `cellkeep mcp install` knows: where each keeps its configuration, and
// what an MCP server is called there. Pure, but for ClientHome::of_environment().
#pragma once

#include "protocol/support/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cli {

/// The directories from which the programs' own rules start.
struct ClientHome {
    std::string home;         // $HOME
    std::string config_home;  // $XDG_CONFIG_HOME, or home/.config
    std::string claude_home;  // $CLAUDE_CONFIG_DIR, or home
    std::string codex_home;   // $CODEX_HOME, or home/.codex

    /// With the defaults of these variables. kInvalidArgument without an absolute home.
    static Result<ClientHome> make(
        const std::string& home,
        const std::string& config_home,
        const std::string& claude_home,
        const std::string& codex_home);
    static Result<ClientHome> of_environment();
};

enum class ConfigFormat { kJson, kToml, kYaml };

struct ClientProgram {
    std::string_view name;
    std::string_view title;
    ConfigFormat format = ConfigFormat::kJson;
    std::string_view container;  // the key below which the servers are
    std::string ClientHome::*root = nullptr;
    std::string_view path;   // below the root
    bool says_type = false;  // an entry has "type": "stdio"
};

/// In the order of their names.
const std::vector<ClientProgram>& client_programs();
/// Null if there is none.
const ClientProgram* find_client_program(std::string_view name);
std::string config_path(const ClientProgram& program, const ClientHome& home);

/// The server that a client program starts, as its configuration names it.
struct ServerEntry {
    std::string name;
    std::string command;  // an absolute path
    std::vector<std::string> arguments;
};
/// 1 to 64 letters, digits, "_" and "-": needs no quotes in any of the formats.
bool is_entry_name(std::string_view name);

/// The file's text with the entry, whatever it had under this name before; "" for a file that is
/// not there. Everything else stays as it is, to the byte. kInvalidArgument: the text is not of the
/// format, or is written so that this cannot be done safely.
Result<std::string> add_entry(
    const ClientProgram& program, const std::string& text, const ServerEntry& entry);
/// The text without it. kNotFound if it is not there; else as add_entry().
Result<std::string> remove_entry(
    const ClientProgram& program, const std::string& text, const std::string& name);

}  // namespace cellkeep::cli
