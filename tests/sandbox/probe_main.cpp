// SPDX-License-Identifier: Apache-2.0
//
// `probe <primitive> [argument …]` tries one thing. `probe --zygote [what]` serves as a zygote,
// whose warm workers try what PROBE_0, PROBE_1 … say; `what` makes it a faulty one: "threads"
// starts a thread first, "files" keeps a file open, "memory" shares memory, "ends" ends at once,
// "waits" is never ready.
#include "sandbox/inside/zygote_loop.hpp"
#include "tests/sandbox/probe.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

using cellkeep::probe::Arguments;

volatile sig_atomic_t signals_seen = 0;

int attempt(const Arguments& words) {
    if (!words.empty() && words[0] == "raise_usr1") {  // the zygote has a handler for it
        (void)::raise(SIGUSR1);
        std::puts(signals_seen == 1 ? "handled" : "not handled");
        return 0;
    }
    for (const auto& primitive : cellkeep::probe::primitives()) {
        if (!words.empty() && primitive.name == words[0]) {
            const int error = primitive.attempt(Arguments(words.begin() + 1, words.end()));
            std::puts(error == 0 ? "ok" : strerrorname_np(error));
            return 0;
        }
    }
    std::puts("unknown primitive");
    return 2;
}

void go_on(char* const* environment) {
    Arguments words;
    for (; *environment != nullptr; ++environment) {
        const std::string_view text(*environment);
        if (text.starts_with("PROBE_")) {
            words.emplace_back(text.substr(text.find('=') + 1));
        }
    }
    std::exit(attempt(words));
}

[[noreturn]] void be_a_zygote(std::string_view what) {
    (void)::signal(SIGUSR1, [](int) { signals_seen = signals_seen + 1; });
    if (what == "ends") {
        std::exit(7);
    }
    if (what == "waits") {
        for (;;) {
            (void)::pause();
        }
    }
    std::thread other;
    if (what == "threads") {
        other = std::thread([] { (void)::pause(); });
    }
    if (what == "files") {
        (void)::open("/dev/null", O_RDONLY);
    }
    if (what == "memory") {
        (void)::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    cellkeep::sandbox::serve_zygote(3, go_on);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc >= 2 && argv[1] == std::string_view("--zygote")) {
        be_a_zygote(argc > 2 ? argv[2] : "");
    }
    return attempt(Arguments(argv + 1, argv + argc));
}
