// SPDX-License-Identifier: Apache-2.0
//
// What a shell's terminal says, read as SWE-ReX reads it: up to the prompt, which has the exit code
// in it, or to a text that the client waits for. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::swerex {

struct TextEnd {
    std::size_t at = 0;            // what is before it is the output
    std::size_t behind = 0;        // where what follows it begins
    std::optional<int> exit_code;  // of a prompt
    std::string matched;           // the expected text; empty: it is the prompt
};
/// The first prompt, "PROMPT:NUMBER:", or expected text that is whole and does not end before
/// `from`.
std::optional<TextEnd> find_text_end(
    std::string_view text,
    std::size_t from,
    std::string_view prompt,
    const std::vector<std::string>& expected);

/// Without escape sequences of a terminal, and with the ends of lines that programs write.
std::string plain_text(std::string_view text);

/// Without blanks and ends of lines on both sides.
std::string_view stripped(std::string_view text);

/// Whether all of it is UTF-8.
bool is_utf8(std::string_view text);

}  // namespace cellkeep::swerex
