// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/command_line.hpp"

#include "protocol/support/syscall.hpp"

#include <filesystem>
#include <system_error>

namespace cellkeep::cli {

namespace fs = std::filesystem;

std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const std::size_t end = text.find('\0');
        words.emplace_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    // It is always behind all that the operator says (replacement.cpp).
    if (words.size() > 2 && words[words.size() - 2] == kTakeOverFlag) {
        words.resize(words.size() - 2);
    }
    return words;
}

Result<CommandLine> read_command_line() {
    BOOST_OUTCOME_TRY(
        const std::string text, read_file("/proc/self/cmdline", kCommandLineBytesMax));
    CommandLine line;
    line.words = split_words(text);
    std::error_code error;
    const bool named = !line.words.empty() && line.words[0].find('/') != std::string::npos;
    const fs::path program =
        named ? fs::absolute(line.words[0], error) : fs::read_symlink("/proc/self/exe", error);
    if (error) {
        return Error(ErrorCode::kSystem, "the program's path: " + error.message());
    }
    line.program = program.string();
    return line;
}

}  // namespace cellkeep::cli
