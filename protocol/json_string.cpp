// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_string.hpp"

#include "protocol/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace cellkeep::protocol {

namespace {

/// Bytes of the character or escape that begins here; a surrogate pair is one. Of valid text.
std::size_t unit_length(std::string_view inside, std::size_t at) {
    if (inside[at] != '\\') {
        return std::max<std::size_t>(1, utf8_length(inside, at));
    }
    const EscapedUnit unit = read_escaped_unit(inside, at);
    if (!unit.valid) {
        return 2;
    }
    return is_high_surrogate(unit.unit) ? 2 * kEscapedUnitBytes : kEscapedUnitBytes;
}

char short_escape(char c) {
    switch (c) {
        case 'b':
            return '\b';
        case 'f':
            return '\f';
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        case 't':
            return '\t';
        default:
            return c;
    }
}

void append_escape(std::string& out, std::string_view inside, std::size_t at) {
    const EscapedUnit unit = read_escaped_unit(inside, at);
    if (!unit.valid) {
        out += short_escape(inside[at + 1]);
        return;
    }
    if (!is_high_surrogate(unit.unit)) {
        append_utf8(out, unit.unit);
        return;
    }
    const EscapedUnit low = read_escaped_unit(inside, at + kEscapedUnitBytes);
    append_utf8(out, 0x10000 + ((unit.unit - 0xD800) << 10U) + (low.unit - 0xDC00));
}

/// Where the next value begins, or the container's end.
std::size_t skip_separators(std::string_view text, std::size_t at) {
    const std::size_t found = text.find_first_not_of(" \t\r\n,", at);
    return found == std::string_view::npos ? text.size() : found;
}

std::size_t string_end(std::string_view text, std::size_t at) {
    for (++at; at < text.size() && text[at] != '"'; ++at) {
        at += text[at] == '\\' ? 1U : 0U;
    }
    return std::min(text.size(), at + 1);
}

std::size_t value_end(std::string_view text, std::size_t at) {
    if (text[at] == '"') {
        return string_end(text, at);
    }
    if (text[at] != '{' && text[at] != '[') {
        const std::size_t found = text.find_first_of(" \t\r\n,]}", at);
        return found == std::string_view::npos ? text.size() : found;
    }
    std::size_t depth = 0;
    while (at < text.size()) {
        const char c = text[at];
        if (c == '"') {
            at = string_end(text, at);
            continue;
        }
        ++at;
        depth += c == '{' || c == '[' ? 1 : 0;
        depth -= c == '}' || c == ']' ? 1 : 0;
        if (depth == 0) {
            break;
        }
    }
    return at;
}

}  // namespace

std::string_view inside_json_string(std::string_view quoted) {
    return quoted.size() >= 2 && quoted.front() == '"' ? quoted.substr(1, quoted.size() - 2)
                                                       : std::string_view();
}

std::string read_json_string(std::string_view quoted) {
    return read_json_string(quoted, std::numeric_limits<std::size_t>::max());
}

std::string read_json_string(std::string_view quoted, std::size_t bytes_max) {
    const std::string_view inside = inside_json_string(quoted);
    std::string text;
    text.reserve(std::min(inside.size(), bytes_max));
    std::size_t at = 0;
    while (at < inside.size() && text.size() < bytes_max) {
        // Up to the next escape it is what it says.
        const std::size_t run_max = std::min(inside.size() - at, bytes_max - text.size());
        const std::size_t run = std::min(inside.substr(at, run_max).find('\\'), run_max);
        if (run > 0) {
            const std::size_t whole =
                at + run < inside.size() ? cut_json_string(inside.substr(at), run) : run;
            if (whole > run) {
                break;  // the next character does not fit
            }
            text.append(inside, at, whole);
            at += whole;
            continue;
        }
        const std::size_t before = text.size();
        append_escape(text, inside, at);
        if (text.size() > bytes_max) {
            text.resize(before);
            break;
        }
        at += unit_length(inside, at);
    }
    return text;
}

std::size_t cut_json_string(std::string_view inside, std::size_t bytes_max) {
    if (inside.size() <= bytes_max) {
        return inside.size();
    }
    // An escape that begins within the bound ends within this.
    const std::string_view near = inside.substr(0, bytes_max + 2 * kEscapedUnitBytes);
    std::size_t at = 0;
    std::size_t escape = near.find('\\');
    while (at < bytes_max) {
        if (escape >= bytes_max) {
            // No escape on the way: only a character must not be cut.
            std::size_t end = bytes_max;
            while (end > at && (static_cast<unsigned char>(inside[end]) & 0xC0U) == 0x80U) {
                --end;
            }
            at = end;
            break;
        }
        const std::size_t length = unit_length(inside, escape);
        if (escape + length > bytes_max) {
            at = escape;
            break;
        }
        at = escape + length;
        escape = near.find('\\', at);
    }
    return at > 0 ? at : std::min(inside.size(), unit_length(inside, 0));
}

JsonStrings read_json_strings(std::string_view array, std::size_t bytes_max) {
    JsonStrings read;
    if (array.empty() || array.front() != '[') {
        return read;
    }
    const std::string_view near = array.substr(0, bytes_max);
    std::size_t at = skip_separators(near, 1);
    while (at < near.size() && near[at] != ']') {
        const std::size_t end = value_end(near, at);
        const bool whole = end < near.size() || near.size() == array.size();
        if (near[at] == '"' && whole) {
            read.strings.push_back(read_json_string(near.substr(at, end - at)));
        } else if (near[at] == '"' && near.size() - at > 2) {
            // Its beginning, to the end of a character. Its closing quote may be the last byte.
            const std::string_view inside = array.substr(at + 1);
            const std::size_t cut = cut_json_string(inside, near.size() - at - 2);
            read.strings.push_back(
                read_json_string('"' + std::string(inside.substr(0, cut)) + '"'));
        }
        if (!whole) {
            break;
        }
        at = skip_separators(near, end);
    }
    read.complete = near.size() == array.size();
    return read;
}

}  // namespace cellkeep::protocol
