// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/error_text.hpp"

namespace cellkeep::session {

std::string strip_escapes(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\x1b') {
            plain += text[i];
            continue;
        }
        if (i + 1 < text.size() && text[i + 1] == '[') {
            i += 2;
            while (i < text.size() && (text[i] < 0x40 || text[i] > 0x7e)) {
                ++i;
            }
        } else if (i + 1 < text.size() && text[i + 1] == ']') {
            while (i < text.size() && text[i] != '\x07') {
                ++i;
            }
        } else {
            ++i;
        }
    }
    return plain;
}

std::string_view hint_for(std::string_view name, std::string_view kind) {
    if (kind == "syntax") {
        return "Fix the syntax at the given line; nothing of this code ran.";
    }
    if (name == "ModuleNotFoundError") {
        return "The package is not in this environment and sessions have no network; use another "
               "one.";
    }
    if (name == "NameError") {
        return "The name is not defined in this session; define it first, or run the cell that "
               "does.";
    }
    if (name == "FileNotFoundError") {
        return "Paths are relative to /workspace; upload the file or list the directory.";
    }
    if (name == "KeyError") {
        return "Look at the keys or columns that exist, for example with df.columns.";
    }
    if (kind == "disk_full") {
        return "The workspace is full; remove files or ask for a larger disk_mb.";
    }
    if (kind == "memory") {
        return "Work in smaller pieces, or ask for a larger memory_mb.";
    }
    return {};
}

}  // namespace cellkeep::session
