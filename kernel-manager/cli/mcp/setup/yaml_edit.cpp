// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/setup/yaml_edit.hpp"

#include "kernel-manager/cli/mcp/setup/lines.hpp"
#include "protocol/support/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace cellkeep::cli {

namespace {

/// How long goose waits for an answer, in seconds.
constexpr int kGoosePatience = 300;

Error no_block_style(std::string why) {
    return {
        ErrorCode::kInvalidArgument,
        "The file is not as this program can change it safely: " + std::move(why) + ".",
        "Add the entry by hand."};
}

std::string_view said_on(const std::string& line) {
    return trim(line, " \t\r\n");
}

/// A blank line, or a comment.
bool says_nothing(const std::string& line) {
    return said_on(line).empty() || said_on(line).starts_with('#');
}

std::size_t indent_of(const std::string& line) {
    return std::min(line.find_first_not_of(' '), line.size());
}

/// What stands behind "key:" on this line, without a comment; nothing if the line is another's.
std::optional<std::string> behind_key(const std::string& line, std::string_view key) {
    std::string_view said = said_on(line);
    for (const std::string& spelled :
         {std::string(key), "\"" + std::string(key) + "\"", "'" + std::string(key) + "'"}) {
        if (!said.starts_with(spelled + ":")) {
            continue;
        }
        std::string_view rest = said.substr(spelled.size() + 1);
        if (!rest.empty() && !rest.starts_with(' ')) {
            continue;
        }
        rest = trim(rest);
        return std::string(rest.starts_with('#') ? "" : rest);
    }
    return std::nullopt;
}

struct YamlMapping {
    std::vector<std::string> lines;
    std::optional<std::size_t> head;  // the container's line
    std::size_t end = 0;              // behind its last line
    std::size_t indent = 2;           // of its entries
    bool empty = true;
    std::size_t entry_begin = 0;  // of the entry with the name; equal to entry_end if there is none
    std::size_t entry_end = 0;
};

Status find_head(YamlMapping& found, std::string_view container) {
    for (std::size_t i = 0; i < found.lines.size(); ++i) {
        const std::string& line = found.lines[i];
        if (line.starts_with('\t') || (line.starts_with("---") && i > 0) ||
            line.starts_with("...")) {
            return no_block_style("it has tabs or several documents");
        }
        if (line.starts_with(' ') || says_nothing(line) || line.starts_with("---")) {
            continue;
        }
        if (line.find(':') == std::string::npos || line.starts_with('{') || line.starts_with('-')) {
            return no_block_style("it is no mapping in block style");
        }
        const auto rest = behind_key(line, container);
        if (!rest) {
            continue;
        }
        if (found.head || (!rest->empty() && *rest != "{}")) {
            return no_block_style(
                "\"" + std::string(container) + "\" stands in it twice, or in flow style");
        }
        found.head = i;
    }
    return ok();
}

Status find_entry(YamlMapping& found, const std::string& name) {
    std::size_t at = *found.head + 1;
    found.end = at;
    for (; at < found.lines.size(); ++at) {
        const std::string& line = found.lines[at];
        if (says_nothing(line)) {
            continue;
        }
        const std::size_t indent = indent_of(line);
        if (indent == 0) {
            break;
        }
        if (found.empty) {
            found.indent = indent;
            found.empty = false;
        }
        if (indent < found.indent || (indent == found.indent && line[indent] == '-')) {
            return no_block_style("its entries are no mapping in block style");
        }
        const bool is_entry = indent == found.indent;
        if (is_entry && found.entry_begin < found.entry_end && behind_key(line, name)) {
            return no_block_style("\"" + name + "\" stands in it twice");
        }
        if (is_entry && behind_key(line, name)) {
            found.entry_begin = at;
            found.entry_end = at + 1;
        } else if (
            !is_entry && found.entry_end == found.end && found.entry_begin < found.entry_end) {
            found.entry_end = at + 1;
        }
        found.end = at + 1;
    }
    return ok();
}

Result<YamlMapping> open_mapping(
    const std::string& text, std::string_view container, const std::string& name) {
    YamlMapping found;
    found.lines = split_lines(text);
    BOOST_OUTCOME_TRY(find_head(found, container));
    if (found.head) {
        BOOST_OUTCOME_TRY(find_entry(found, name));
    }
    return found;
}

/// A YAML double-quoted scalar: JSON's strings are some.
std::string yaml_string(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> block_lines(const ServerEntry& entry, std::size_t indent) {
    const std::string outer(indent, ' ');
    const std::string inner = outer + "  ";
    std::vector<std::string> lines = {
        outer + entry.name + ":\n",
        inner + "enabled: true\n",
        inner + "type: stdio\n",
        inner + "name: " + entry.name + "\n",
        inner + "cmd: " + yaml_string(entry.command) + "\n"};
    if (entry.arguments.empty()) {
        lines.push_back(inner + "args: []\n");
    } else {
        lines.push_back(inner + "args:\n");
    }
    for (const std::string& argument : entry.arguments) {
        lines.push_back(inner + "  - " + yaml_string(argument) + "\n");
    }
    lines.push_back(inner + "timeout: " + std::to_string(kGoosePatience) + "\n");
    return lines;
}

using LineOffset = std::vector<std::string>::difference_type;

void erase_lines(std::vector<std::string>& lines, std::size_t from, std::size_t to) {
    lines.erase(
        lines.begin() + static_cast<LineOffset>(from), lines.begin() + static_cast<LineOffset>(to));
}

}  // namespace

Result<std::string> set_yaml_block(
    const std::string& text, std::string_view container, const ServerEntry& entry) {
    BOOST_OUTCOME_TRY(YamlMapping found, open_mapping(text, container, entry.name));
    std::vector<std::string>& lines = found.lines;
    const std::vector<std::string> block = block_lines(entry, found.indent);
    if (!found.head) {
        if (!lines.empty() && !lines.back().ends_with('\n')) {
            lines.back() += '\n';
        }
        lines.push_back(std::string(container) + ":\n");
        lines.insert(lines.end(), block.begin(), block.end());
        return join_lines(lines);
    }
    std::size_t at = *found.head + 1;
    if (found.entry_begin < found.entry_end) {
        at = found.entry_begin;
        erase_lines(lines, found.entry_begin, found.entry_end);
    }
    std::string& head = lines[*found.head];
    const std::size_t flow = found.empty ? head.find("{}") : std::string::npos;
    if (flow != std::string::npos) {
        const std::size_t blank = head.find_last_not_of(' ', flow - 1) + 1;
        head.erase(blank, flow + 2 - blank);
    }
    if (!head.ends_with('\n')) {
        head += '\n';
    }
    lines.insert(lines.begin() + static_cast<LineOffset>(at), block.begin(), block.end());
    return join_lines(lines);
}

Result<std::string> remove_yaml_block(
    const std::string& text, std::string_view container, const std::string& name) {
    BOOST_OUTCOME_TRY(YamlMapping found, open_mapping(text, container, name));
    if (!found.head || found.entry_begin == found.entry_end) {
        return Error(ErrorCode::kNotFound, "The file has no such entry.");
    }
    erase_lines(found.lines, found.entry_begin, found.entry_end);
    BOOST_OUTCOME_TRY(YamlMapping left, open_mapping(join_lines(found.lines), container, name));
    if (left.empty) {
        std::string& head = left.lines[*left.head];
        head.insert(head.find(':') + 1, " {}");
    }
    return join_lines(left.lines);
}

}  // namespace cellkeep::cli
