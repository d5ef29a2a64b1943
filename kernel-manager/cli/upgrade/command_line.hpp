// SPDX-License-Identifier: Apache-2.0
//
// How this process was started, and so how the program is that takes its place: the same words, and
// what is at the same path by then.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cli {

/// Of all words together.
inline constexpr std::size_t kCommandLineBytesMax = 256U << 10U;
/// Behind the words of a program that takes over; the number of the descriptor follows
/// (hand_over.hpp).
inline constexpr const char* kTakeOverFlag = "--take-over";
/// Behind the words of a program that says whether it could take over (program_check.hpp).
inline constexpr const char* kTakeOverCheckFlag = "--take-over-check";

struct CommandLine {
    /// Absolute. As it was named, so that a link leads to what it leads to by then. A name alone is
    /// what PATH finds for it, if that is this program; else the path is where this program is.
    std::string program;
    std::vector<std::string> words;  // the first is the program's, kTakeOverFlag is not among them
};

/// The first file of that name in the folders of a PATH that is this file; empty: none is. exe: a
/// path to it. A folder that is not absolute does not count.
std::string find_in_path(std::string_view name, std::string_view path, const std::string& exe);

/// text: as /proc/self/cmdline has it, each word with a NUL behind it. Pure.
std::vector<std::string> split_words(std::string_view text);

/// Call it before the program's file changes. kLimitExceeded beyond kCommandLineBytesMax.
Result<CommandLine> read_command_line();

}  // namespace cellkeep::cli
