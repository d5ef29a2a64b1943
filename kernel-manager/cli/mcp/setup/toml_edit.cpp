// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/setup/toml_edit.hpp"

#include "kernel-manager/cli/mcp/setup/lines.hpp"
#include "protocol/support/text.hpp"
#include "protocol/support/toml_depth.hpp"

#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include <optional>
#include <sstream>
#include <vector>

namespace cellkeep::cli {

namespace {

Error no_toml(std::string why) {
    return {
        ErrorCode::kInvalidArgument,
        "The file is not as this program can change it safely: " + std::move(why) + ".",
        "Add the entry by hand."};
}

std::optional<toml::table> parse_toml(const std::string& text) {
    if (check_toml_depth(text).has_error()) {
        return std::nullopt;
    }
    try {
        return toml::parse(text);
    } catch (const toml::parse_error&) {
        return std::nullopt;
    }
}

/// A TOML basic string: JSON's escapes are TOML's.
std::string toml_string(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string table_text(std::string_view container, const ServerEntry& entry) {
    std::string text = "[" + std::string(container) + "." + entry.name +
                       "]\ncommand = " + toml_string(entry.command) + "\nargs = [";
    for (const std::string& argument : entry.arguments) {
        text += (&argument == entry.arguments.data() ? "" : ", ") + toml_string(argument);
    }
    return text + "]\n";
}

/// Whether the line begins the table or one below it.
bool begins_table(std::string_view line, std::string_view container, const std::string& name) {
    line = trim(line);
    for (const std::string& key : {name, "\"" + name + "\""}) {
        const std::string head = "[" + std::string(container) + "." + key;
        if (line.starts_with(head + "]") || line.starts_with(head + ".")) {
            return true;
        }
    }
    return false;
}

/// The lines without the table's, and without the blank line before it; nothing if it has none.
std::optional<std::string> without_table(
    const std::string& text, std::string_view container, const std::string& name) {
    const std::vector<std::string> lines = split_lines(text);
    std::vector<std::string> kept;
    std::vector<std::string> pending;  // comments and blanks, which may belong to the next table
    bool inside = false;
    bool found = false;
    for (const std::string& line : lines) {
        const std::string_view said = trim(line, " \t\r\n");
        if (said.starts_with('[')) {
            const bool was_inside = std::exchange(inside, begins_table(line, container, name));
            if (was_inside && !inside) {
                kept.insert(kept.end(), pending.begin(), pending.end());
            }
            pending.clear();
            if (inside && !std::exchange(found, true) && !kept.empty() &&
                trim(kept.back(), " \t\r\n").empty()) {
                kept.pop_back();
            }
        }
        if (!inside) {
            kept.push_back(line);
        } else if (said.empty() || said.starts_with('#')) {
            pending.push_back(line);
        } else {
            pending.clear();
        }
    }
    if (!found) {
        return std::nullopt;
    }
    kept.insert(kept.end(), pending.begin(), pending.end());
    return join_lines(kept);
}

/// The table's own value taken out of the parsed file; an empty container goes, too.
void take_out(toml::table& whole, std::string_view container, const std::string& name) {
    if (auto* servers = whole.get_as<toml::table>(container)) {
        servers->erase(name);
        if (servers->empty()) {
            whole.erase(container);
        }
    }
}

}  // namespace

Result<std::string> set_toml_table(
    const std::string& text, std::string_view container, const ServerEntry& entry) {
    auto before = parse_toml(text);
    if (!before) {
        return no_toml("it is no TOML, or nested very deep");
    }
    std::string changed = without_table(text, container, entry.name).value_or(text);
    if (!changed.empty() && !changed.ends_with('\n')) {
        changed += '\n';
    }
    changed += (changed.empty() ? "" : "\n") + table_text(container, entry);
    auto after = parse_toml(changed);
    if (!after) {
        return no_toml("\"" + std::string(container) + "\" is written in another way");
    }
    const auto command = (*after)[container][entry.name]["command"].value<std::string>();
    take_out(*before, container, entry.name);
    take_out(*after, container, entry.name);
    if (command != entry.command || *before != *after) {
        return no_toml("\"" + std::string(container) + "\" is written in another way");
    }
    return changed;
}

Result<std::string> remove_toml_table(
    const std::string& text, std::string_view container, const std::string& name) {
    auto before = parse_toml(text);
    if (!before) {
        return no_toml("it is no TOML, or nested very deep");
    }
    if (!(*before)[container][name]) {
        return Error(ErrorCode::kNotFound, "The file has no such entry.");
    }
    const auto changed = without_table(text, container, name);
    auto after = changed ? parse_toml(*changed) : std::nullopt;
    if (!after || (*after)[container][name]) {
        return no_toml("\"" + name + "\" is written in another way");
    }
    take_out(*before, container, name);
    take_out(*after, container, name);
    if (*before != *after) {
        return no_toml("\"" + name + "\" is written in another way");
    }
    return *changed;
}

}  // namespace cellkeep::cli
