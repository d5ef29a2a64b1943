// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/run/console.hpp"

#include <cstdio>
#include <string>

namespace cellkeep::cli {

namespace {

void write(std::FILE* stream, std::string_view text) {
    // Ignored: if the terminal is gone, there is no place to report it.
    (void)std::fwrite(text.data(), 1, text.size(), stream);
    (void)std::fflush(stream);
}

}  // namespace

void print(std::string_view text) {
    write(stdout, text);
}

void print_error(std::string_view text) {
    write(stderr, text);
}

void print_error(const Error& error) {
    std::string text = "cellkeep: " + error.message() + "\n";
    if (!error.hint().empty()) {
        text += "  " + error.hint() + "\n";
    }
    print_error(std::string_view(text));
}

}  // namespace cellkeep::cli
