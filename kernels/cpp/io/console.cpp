// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/io/console.hpp"

#include <nlohmann/json.hpp>

#include <stdio_ext.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ext/stdio_sync_filebuf.h>
#include <iostream>
#include <memory>
#include <string>

namespace cellkeep::cpp {

namespace {

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): stdin is one as well.
Channel* g_console_channel = nullptr;
pid_t g_asker = 0;   // the thread that may ask; 0: none
std::string g_rest;  // of a line that was answered
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

using ConsoleBuffer = __gnu_cxx::stdio_sync_filebuf<char>;

/// Of a stream that is there until the process has ended.
ConsoleBuffer* buffer_of(FILE* file) {
    return std::make_unique<ConsoleBuffer>(file).release();
}

/// False at the end of the input.
bool ask_for_line() {
    if (::gettid() != g_asker) {
        // A process or a thread that the cell made would take the interpreter's lines.
        std::cerr
            << (g_asker == 0
                    ? "cellkeep: this execution allows no input: std::cin is at its end"
                    : "cellkeep: only the cell's own thread may ask for input: std::cin is at "
                      "its end")
            << std::endl;
        return false;
    }
    (void)std::fflush(stdout);
    g_console_channel->say(Word::kEvent, R"({"event":"input","prompt":"","password":false})");
    std::string line;
    while (g_console_channel->read_line(line)) {
        const auto answer = nlohmann::json::parse(line, nullptr, false);
        if (!answer.is_object() || answer.value("request", "") != "input") {
            continue;
        }
        if (answer.value("eof", false)) {
            return false;
        }
        g_rest = answer.value("value", "") + "\n";
        return true;
    }
    return false;
}

extern "C" ssize_t read_console(void* /*cookie*/, char* buffer, std::size_t size) {
    if (g_rest.empty() && !ask_for_line()) {
        return 0;
    }
    const std::size_t count = std::min(size, g_rest.size());
    std::memcpy(buffer, g_rest.data(), count);
    g_rest.erase(0, count);
    return static_cast<ssize_t>(count);
}

}  // namespace

void install_console(Channel& channel) {
    g_console_channel = &channel;
    (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    FILE* console = ::fopencookie(nullptr, "r", {&read_console, nullptr, nullptr, nullptr});
    if (console == nullptr) {
        return;  // no memory for a FILE; stdin stays /dev/null
    }
    stdin = console;  // glibc: an ordinary variable
    // A cell that asks for it gets nothing more by it: buffers of its own would lose what stdin has
    // and what cout has not written when the cell crashes.
    (void)std::ios_base::sync_with_stdio(false);
    std::cin.rdbuf(buffer_of(console));
    std::cout.rdbuf(buffer_of(stdout));
    std::cerr.rdbuf(buffer_of(stderr));
    std::clog.rdbuf(std::cerr.rdbuf());
}

void allow_input(bool allowed) {
    g_asker = allowed ? ::gettid() : 0;
    // What a cell has left of a line was its answer, not the next cell's.
    g_rest.clear();
    ::__fpurge(stdin);
    std::clearerr(stdin);
    std::cin.clear();
}

}  // namespace cellkeep::cpp
