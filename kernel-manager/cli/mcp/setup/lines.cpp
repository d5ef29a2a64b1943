// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/setup/lines.hpp"

#include <algorithm>

namespace cellkeep::cli {

std::vector<std::string> split_lines(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t newline = text.find('\n');
        const std::size_t size = newline == std::string_view::npos ? text.size() : newline + 1;
        lines.emplace_back(text.substr(0, size));
        text.remove_prefix(size);
    }
    return lines;
}

std::string join_lines(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
        text += line;
    }
    return text;
}

std::string show_difference(std::string_view before, std::string_view after) {
    const std::vector<std::string> old_lines = split_lines(before);
    const std::vector<std::string> new_lines = split_lines(after);
    const std::size_t shorter = std::min(old_lines.size(), new_lines.size());
    std::size_t same = 0;
    while (same < shorter && old_lines[same] == new_lines[same]) {
        ++same;
    }
    std::size_t tail = 0;
    while (tail < shorter - same &&
           old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail]) {
        ++tail;
    }
    if (same == old_lines.size() && same == new_lines.size()) {
        return {};
    }
    std::string shown = "@@ line " + std::to_string(same + 1) + " @@\n";
    const auto show = [&](const char* sign, const std::vector<std::string>& lines) {
        for (std::size_t i = same; i + tail < lines.size(); ++i) {
            shown += sign + lines[i] + (lines[i].ends_with('\n') ? "" : "\n");
        }
    };
    show("-", old_lines);
    show("+", new_lines);
    return shown;
}

}  // namespace cellkeep::cli
