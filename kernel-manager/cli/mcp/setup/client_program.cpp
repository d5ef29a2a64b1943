// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/setup/client_program.hpp"

#include "kernel-manager/cli/mcp/setup/json_edit.hpp"
#include "kernel-manager/cli/mcp/setup/toml_edit.hpp"
#include "kernel-manager/cli/mcp/setup/yaml_edit.hpp"

#include <algorithm>
#include <cstdlib>

namespace cellkeep::cli {

namespace {

constexpr std::size_t kEntryNameBytesMax = 64;

std::string variable(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::string() : std::string(value);
}

/// A relative one is no answer: the programs would look elsewhere.
std::string absolute_or(const std::string& directory, const std::string& fallback) {
    return directory.starts_with('/') ? directory : fallback;
}

nlohmann::ordered_json json_entry(const ClientProgram& program, const ServerEntry& entry) {
    nlohmann::ordered_json value = nlohmann::ordered_json::object();
    if (program.says_type) {
        value["type"] = "stdio";
    }
    value["command"] = entry.command;
    value["args"] = entry.arguments;
    return value;
}

}  // namespace

Result<ClientHome> ClientHome::make(
    const std::string& home,
    const std::string& config_home,
    const std::string& claude_home,
    const std::string& codex_home) {
    if (!home.starts_with('/')) {
        return Error(
            ErrorCode::kInvalidArgument,
            "HOME is not an absolute path.",
            "Name the file with --file.");
    }
    return ClientHome{
        home,
        absolute_or(config_home, home + "/.config"),
        absolute_or(claude_home, home),
        absolute_or(codex_home, home + "/.codex")};
}

Result<ClientHome> ClientHome::of_environment() {
    return make(
        variable("HOME"),
        variable("XDG_CONFIG_HOME"),
        variable("CLAUDE_CONFIG_DIR"),
        variable("CODEX_HOME"));
}

const std::vector<ClientProgram>& client_programs() {
    static const std::vector<ClientProgram> all = {
        {"claude-code",
         "Claude Code",
         ConfigFormat::kJson,
         "mcpServers",
         &ClientHome::claude_home,
         ".claude.json",
         true},
        {"claude-desktop",
         "Claude Desktop",
         ConfigFormat::kJson,
         "mcpServers",
         &ClientHome::config_home,
         "Claude/claude_desktop_config.json",
         false},
        {"codex",
         "Codex",
         ConfigFormat::kToml,
         "mcp_servers",
         &ClientHome::codex_home,
         "config.toml",
         false},
        {"cursor",
         "Cursor",
         ConfigFormat::kJson,
         "mcpServers",
         &ClientHome::home,
         ".cursor/mcp.json",
         false},
        {"gemini",
         "Gemini CLI",
         ConfigFormat::kJson,
         "mcpServers",
         &ClientHome::home,
         ".gemini/settings.json",
         false},
        {"goose",
         "goose",
         ConfigFormat::kYaml,
         "extensions",
         &ClientHome::config_home,
         "goose/config.yaml",
         true},
        {"vscode",
         "VS Code",
         ConfigFormat::kJson,
         "servers",
         &ClientHome::config_home,
         "Code/User/mcp.json",
         true},
    };
    return all;
}

const ClientProgram* find_client_program(std::string_view name) {
    const auto& all = client_programs();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::string config_path(const ClientProgram& program, const ClientHome& home) {
    return home.*program.root + "/" + std::string(program.path);
}

bool is_entry_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    };
    return !name.empty() && name.size() <= kEntryNameBytesMax &&
           std::all_of(name.begin(), name.end(), allowed);
}

Result<std::string> add_entry(
    const ClientProgram& program, const std::string& text, const ServerEntry& entry) {
    switch (program.format) {
        case ConfigFormat::kToml:
            return set_toml_table(text, program.container, entry);
        case ConfigFormat::kYaml:
            return set_yaml_block(text, program.container, entry);
        case ConfigFormat::kJson:
            break;
    }
    return set_json_member(text, program.container, entry.name, json_entry(program, entry));
}

Result<std::string> remove_entry(
    const ClientProgram& program, const std::string& text, const std::string& name) {
    switch (program.format) {
        case ConfigFormat::kToml:
            return remove_toml_table(text, program.container, name);
        case ConfigFormat::kYaml:
            return remove_yaml_block(text, program.container, name);
        case ConfigFormat::kJson:
            break;
    }
    return remove_json_member(text, program.container, name);
}

}  // namespace cellkeep::cli
