// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/command_line.hpp"

#include "protocol/support/syscall.hpp"

#include <cstdlib>
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

std::string find_in_path(std::string_view name, std::string_view path, const std::string& exe) {
    while (!name.empty() && !path.empty()) {
        const std::size_t end = path.find(':');
        const fs::path found = fs::path(path.substr(0, end)) / name;
        path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
        std::error_code missing;  // Ignored: then it is not this file.
        if (found.is_absolute() && fs::equivalent(found, exe, missing)) {
            return found.string();
        }
    }
    return {};
}

namespace {

constexpr const char* kOwnProgram = "/proc/self/exe";

Result<std::string> find_program(const std::string& name) {
    std::error_code error;
    fs::path program;
    if (name.find('/') != std::string::npos) {
        program = fs::absolute(name, error);
    } else {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment.
        const char* const path = ::getenv("PATH");
        program = find_in_path(name, path != nullptr ? path : "", kOwnProgram);
        if (program.empty()) {
            program = fs::read_symlink(kOwnProgram, error);
        }
    }
    if (error) {
        return Error(ErrorCode::kSystem, "the program's path: " + error.message());
    }
    return program.string();
}

}  // namespace

Result<CommandLine> read_command_line() {
    BOOST_OUTCOME_TRY(
        const std::string text, read_file("/proc/self/cmdline", kCommandLineBytesMax));
    CommandLine line;
    line.words = split_words(text);
    BOOST_OUTCOME_TRY(
        line.program, find_program(line.words.empty() ? std::string() : line.words[0]));
    return line;
}

}  // namespace cellkeep::cli
