// SPDX-License-Identifier: Apache-2.0
//
// `probe <primitive> [argument …]` tries one thing. `probe --zygote [what]` serves as a zygote,
// whose warm workers try what PROBE_0, PROBE_1 … say; `what` makes it a faulty one: "threads"
// starts a thread first, "files" keeps a file open, "memory" shares memory, "ends" ends at once,
// "waits" is never ready. `probe --copied` is a worker that a sleeping copy is made of.
#include "sandbox/inside/copy/sleeping_copy.hpp"
#include "sandbox/inside/zygote_loop.hpp"
#include "sandbox/sandbox.hpp"
#include "tests/sandbox/probe.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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

/// Gets the socket of a copy over the link, makes the copy and tells its number there. What goes on
/// from the copy waits for a byte on its own link, and says who and where it is.
int be_copied() {
    constexpr int kLink = cellkeep::sandbox::kWorkerLinkFd;
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(kLink, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == nullptr) {
        return 2;
    }
    int socket = -1;
    std::memcpy(&socket, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(socket));
    using cellkeep::sandbox::ChannelDescriptor;
    using cellkeep::sandbox::ChannelEnd;
    using cellkeep::sandbox::CopyOutcome;
    const std::array<ChannelDescriptor, 3> channels{
        {{1, ChannelEnd::kStdout, false},
         {2, ChannelEnd::kStderr, false},
         {kLink, ChannelEnd::kLink, false}}};
    (void)!::write(::creat("/workspace/parents", 0600), "p", 1);
    const CopyOutcome outcome =
        cellkeep::sandbox::make_sleeping_copy({.socket = socket, .channels = channels});
    if (outcome.where != CopyOutcome::Where::kWoken) {
        (void)::dprintf(kLink, "%d\n", outcome.copied);
        (void)::pause();
        return 0;
    }
    (void)!::read(kLink, &byte, 1);
    const int parents = ::open("/workspace/parents", O_RDONLY);
    const int own = ::creat("/workspace/own", 0600);
    (void)::dprintf(
        1,
        "%d %d %u %s %s %d\n",
        outcome.branch ? 1 : 0,
        ::getppid(),
        ::getuid(),
        parents < 0 ? "none" : "parents",
        own < 0 ? strerrorname_np(errno) : "ok",
        ::syscall(SYS_setns, parents, 0) < 0 ? errno : 0);
    (void)::pause();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && argv[1] == std::string_view("--copied")) {
        return be_copied();
    }
    if (argc >= 2 && argv[1] == std::string_view("--zygote")) {
        be_a_zygote(argc > 2 ? argv[2] : "");
    }
    return attempt(Arguments(argv + 1, argv + argc));
}
