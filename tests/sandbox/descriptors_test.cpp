// SPDX-License-Identifier: Apache-2.0
//
// Which descriptors reach a worker, and which are refused on both sides of the wall.
#include "protocol/support/syscall.hpp"
#include "tests/sandbox/bare_sandbox.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::test {

using sandbox::WorkerSpec;

namespace {

constexpr const char* kListDescriptors = R"(
import os, stat, sys
held = {}
for fd in range(0, 1024):
    try: held[fd] = os.fstat(fd)
    except OSError: pass
print(sorted(held), stat.S_ISCHR(held[0].st_mode), stat.S_ISFIFO(held[1].st_mode))
if 3 in held: os.write(3, b"hello 3")
)";

UniqueFd null_output() {
    return UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
}

WorkerSpec harmless() {
    WorkerSpec spec;
    spec.argv = {"/usr/bin/true"};
    spec.stdout_fd = null_output();
    spec.stderr_fd = null_output();
    return spec;
}

/// A TCP socket of the host, connected to one of its listeners: the descriptor that would open the
/// host's network to a guest (connect(2), AF_UNSPEC).
struct Connected {
    UniqueFd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    UniqueFd client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    Connected() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        auto* plain = reinterpret_cast<sockaddr*>(&address);
        REQUIRE(::bind(listener.get(), plain, size) == 0);
        REQUIRE(::listen(listener.get(), 1) == 0);
        REQUIRE(::getsockname(listener.get(), plain, &size) == 0);
        REQUIRE(::connect(client.get(), plain, size) == 0);
    }
};

struct Forbidden {
    const char* name;
    std::function<UniqueFd()> make;
};

/// None of these descriptors may be a worker's link or output.
std::vector<Forbidden> never_crossing() {
    const auto socket_of = [](int family, int type) {
        return UniqueFd(::socket(family, type | SOCK_CLOEXEC, 0));
    };
    const auto opened = [](const char* path, int flags) {
        return UniqueFd(::open(path, flags | O_CLOEXEC));
    };
    return {
        {"a connected TCP socket", [] { return std::move(Connected().client); }},
        {"a TCP socket", [=] { return socket_of(AF_INET, SOCK_STREAM); }},
        {"a UDP socket", [=] { return socket_of(AF_INET6, SOCK_DGRAM); }},
        {"a netlink socket", [=] { return socket_of(AF_NETLINK, SOCK_RAW); }},
        {"an unconnected Unix socket", [=] { return socket_of(AF_UNIX, SOCK_STREAM); }},
        {"a Unix datagram pair",
         [] { return std::move(make_socket_pair(SOCK_DGRAM).value().first); }},
        {"a directory", [=] { return opened("/", O_RDONLY | O_DIRECTORY); }},
        {"a path", [=] { return opened("/", O_PATH); }},
        {"a file", [=] { return opened("/etc/passwd", O_RDONLY); }},
        {"another device", [=] { return opened("/dev/full", O_WRONLY); }},
        {"a null device to read", [=] { return opened("/dev/null", O_RDONLY); }},
        {"a null device both ways", [=] { return opened("/dev/null", O_RDWR); }},
        {"a reading end", [] { return std::move(make_pipe().value().read_end); }},
    };
}

}  // namespace

TEST_CASE("a worker holds descriptors 0 to 2, or to 3 with a link, and no other") {
    auto sandbox = make_sandbox();
    CHECK(run_python(sandbox, kListDescriptors).out == "[0, 1, 2] True True\n");
    auto link = make_socket_pair(SOCK_STREAM);
    auto out = make_pipe();
    WorkerSpec spec = harmless();
    spec.argv = {"/usr/bin/python3", "-c", kListDescriptors};
    spec.stdout_fd = std::move(out.value().write_end);
    spec.link_fd = std::move(link.value().second);
    const auto started = sandbox.start(std::move(spec));
    REQUIRE(started.has_value());
    CHECK(read_all(link.value().first.get()) == "hello 3");
    CHECK(read_all(out.value().read_end.get()) == "[0, 1, 2, 3] True True\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("the server hands no socket of a network, no directory and no file to a worker") {
    auto sandbox = make_sandbox();
    const auto refused = [&](WorkerSpec spec) {
        const auto started = sandbox.start(std::move(spec));
        return started.has_error() && started.error().code() == ErrorCode::kInvalidArgument;
    };
    for (const Forbidden& forbidden : never_crossing()) {
        INFO(forbidden.name);
        for (UniqueFd WorkerSpec::*place :
             {&WorkerSpec::stdout_fd, &WorkerSpec::stderr_fd, &WorkerSpec::link_fd}) {
            WorkerSpec spec = harmless();
            spec.*place = forbidden.make();
            REQUIRE(spec.*place);
            CHECK(refused(std::move(spec)));
        }
    }
    WorkerSpec output_as_link = harmless();
    output_as_link.link_fd = std::move(make_pipe().value().write_end);
    CHECK(refused(std::move(output_as_link)));
    WorkerSpec link_as_output = harmless();
    link_as_output.stdout_fd = std::move(make_socket_pair(SOCK_STREAM).value().first);
    CHECK(refused(std::move(link_as_output)));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("pid 1 refuses the same descriptors by itself, and ends when it gets too many") {
    const auto pid1 = launch_without_filter();
    const UniqueFd out = null_output();
    auto pair = make_socket_pair(SOCK_STREAM);
    const int link = pair.value().first.get();
    const auto answer = [&](std::vector<int> fds) {
        return ask_start(pid1, {"/usr/bin/true"}, fds).error;
    };
    for (const Forbidden& forbidden : never_crossing()) {
        INFO(forbidden.name);
        const UniqueFd held = forbidden.make();
        CHECK(answer({held.get(), out.get()}) == EINVAL);
        CHECK(answer({out.get(), held.get()}) == EINVAL);
        CHECK(answer({out.get(), out.get(), held.get()}) == EINVAL);
    }
    CHECK(answer({out.get()}) == EINVAL);
    CHECK(answer({out.get(), out.get()}) == 0);
    CHECK(answer({out.get(), out.get(), link}) == 0);
    CHECK(answer({out.get(), out.get(), link, link}) == EINVAL);
    // The server never sends this many, so it is not its request: pid 1 ends, and all with it.
    (void)answer({out.get(), out.get(), link, link, link});
    CHECK(wait_readable(pid1.pidfd.get()));
    require_ok(sandbox::kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("a worker reads from a pipe that it was given, and from nothing else") {
    auto sandbox = make_sandbox();
    auto in = make_pipe();
    auto out = make_pipe();
    WorkerSpec spec = harmless();
    spec.argv = {"/usr/bin/python3", "-c", R"(
import os, stat
print(stat.S_ISFIFO(os.fstat(0).st_mode), os.read(0, 100), os.read(0, 100))
held = [fd for fd in range(1024) if os.path.exists(f'/proc/self/fd/{fd}')]
print(held[:4])
)"};
    spec.stdin_fd = std::move(in.value().read_end);
    spec.stdout_fd = std::move(out.value().write_end);
    const auto started = sandbox.start(std::move(spec));
    REQUIRE(started.has_value());
    CHECK(started.value().inside > 1);
    REQUIRE(::write(in.value().write_end.get(), "text", 4) == 4);
    in.value().write_end.reset();
    CHECK(read_all(out.value().read_end.get()) == "True b'text' b''\n[0, 1, 2]\n");
    const auto refused = [&](WorkerSpec wrong) {
        const auto answer = sandbox.start(std::move(wrong));
        return answer.has_error() && answer.error().code() == ErrorCode::kInvalidArgument;
    };
    for (const Forbidden& forbidden : never_crossing()) {
        if (std::string(forbidden.name) == "a reading end") {
            continue;
        }
        INFO(forbidden.name);
        WorkerSpec wrong = harmless();
        wrong.stdin_fd = forbidden.make();
        CHECK(refused(std::move(wrong)));
    }
    WorkerSpec output = harmless();
    output.stdin_fd = std::move(make_pipe().value().write_end);
    CHECK(refused(std::move(output)));
    WorkerSpec both = harmless();
    both.stdin_fd = std::move(make_pipe().value().read_end);
    both.link_fd = std::move(make_socket_pair(SOCK_STREAM).value().first);
    CHECK(refused(std::move(both)));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a worker with a terminal is controlled by it, and types into none") {
    auto sandbox = make_sandbox();
    UniqueFd controller(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(controller);
    REQUIRE(::unlockpt(controller.get()) == 0);
    const auto open_terminal = [&] {
        return UniqueFd(::ioctl(controller.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    };
    WorkerSpec spec;
    spec.argv = {"/usr/bin/python3", "-c", R"(
import fcntl, os, termios
print(all(os.isatty(fd) for fd in range(3)), os.tcgetpgrp(0) == os.getpid(), os.listdir('/proc/self/fd')[:3])
mode = termios.tcgetattr(0)
termios.tcsetattr(0, termios.TCSANOW, mode)
for name in (0x5412, 0x541C, 0x5423, 0x541D, 0x80045430, 0x5441):
    try: fcntl.ioctl(0, name, b'x' * 8); print('done')
    except OSError as error: print(error.strerror)
)"};
    spec.terminal_fd = open_terminal();
    const auto started = sandbox.start(std::move(spec));
    REQUIRE(started.has_value());
    std::string said;
    std::array<char, 4096> buffer{};
    ssize_t got = 0;
    while ((got = ::read(controller.get(), buffer.data(), buffer.size())) > 0) {
        said.append(buffer.data(), static_cast<std::size_t>(got));
    }
    CHECK(said.starts_with("True True ['0', '1', '2']"));
    std::size_t refusals = 0;
    for (std::size_t at = 0; (at = said.find("Operation not permitted", at)) != std::string::npos;
         ++at) {
        ++refusals;
    }
    CHECK(refusals == 6);
    const auto refused = [&](WorkerSpec wrong) {
        const auto answer = sandbox.start(std::move(wrong));
        return answer.has_error() && answer.error().code() == ErrorCode::kInvalidArgument;
    };
    for (const Forbidden& forbidden : never_crossing()) {
        INFO(forbidden.name);
        WorkerSpec wrong;
        wrong.argv = {"/usr/bin/true"};
        wrong.terminal_fd = forbidden.make();
        CHECK(refused(std::move(wrong)));
    }
    WorkerSpec typist;
    typist.argv = {"/usr/bin/true"};
    typist.terminal_fd = UniqueFd(::dup(controller.get()));
    CHECK(refused(std::move(typist)));
    WorkerSpec both = harmless();
    both.terminal_fd = open_terminal();
    CHECK(refused(std::move(both)));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("pid 1 takes a terminal, and not what controls it") {
    const auto pid1 = launch_without_filter();
    const UniqueFd out = null_output();
    UniqueFd controller(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(::unlockpt(controller.get()) == 0);
    const UniqueFd terminal(::ioctl(controller.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    const auto answer = [&](std::vector<int> fds, std::uint32_t own_terminal) {
        return ask_start(pid1, {"/usr/bin/true"}, fds, 0, 0, 0, own_terminal).error;
    };
    CHECK(answer({terminal.get()}, 1) == 0);
    CHECK(answer({terminal.get()}, 0) == EINVAL);
    CHECK(answer({terminal.get()}, 2) == EINVAL);
    CHECK(answer({controller.get()}, 1) == EINVAL);
    CHECK(answer({terminal.get(), out.get()}, 1) == EINVAL);
    CHECK(answer({terminal.get(), terminal.get()}, 0) == EINVAL);
    CHECK(answer({}, 1) == EINVAL);
    for (const Forbidden& forbidden : never_crossing()) {
        INFO(forbidden.name);
        const UniqueFd held = forbidden.make();
        CHECK(answer({held.get()}, 1) == EINVAL);
    }
    require_ok(sandbox::kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("pid 1 takes an input only if it is one") {
    const auto pid1 = launch_without_filter();
    const UniqueFd out = null_output();
    auto pipe = make_pipe();
    auto pair = make_socket_pair(SOCK_STREAM);
    const auto answer = [&](std::vector<int> fds, std::uint32_t own_input) {
        return ask_start(pid1, {"/usr/bin/true"}, fds, 0, 0, own_input).error;
    };
    const int in = pipe.value().read_end.get();
    CHECK(answer({in, out.get(), out.get()}, 1) == 0);
    CHECK(answer({in, out.get(), out.get()}, 0) == EINVAL);
    CHECK(answer({in, out.get(), out.get()}, 2) == EINVAL);
    CHECK(answer({in, out.get()}, 1) == EINVAL);
    CHECK(answer({in, out.get(), out.get(), pair.value().first.get()}, 1) == EINVAL);
    CHECK(answer({pipe.value().write_end.get(), out.get(), out.get()}, 1) == EINVAL);
    for (const Forbidden& forbidden : never_crossing()) {
        INFO(forbidden.name);
        const UniqueFd held = forbidden.make();
        const bool input = std::string(forbidden.name) == "a reading end";
        CHECK(answer({held.get(), out.get(), out.get()}, 1) == (input ? 0 : EINVAL));
    }
    require_ok(sandbox::kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("pid 1 lets a worker only into a cgroup, and into no group past the last") {
    const auto pid1 = launch_without_filter();
    const UniqueFd out = null_output();
    const auto answer = [&](std::vector<int> fds, std::uint32_t own_cgroup, std::uint32_t group) {
        return ask_start(pid1, {"/usr/bin/true"}, fds, own_cgroup, group).error;
    };
    for (const Forbidden& forbidden : never_crossing()) {
        INFO(forbidden.name);
        const UniqueFd held = forbidden.make();
        CHECK(answer({out.get(), out.get(), held.get()}, 1, 1) == EINVAL);
    }
    CHECK(answer({out.get(), out.get(), out.get()}, 1, 1) == EINVAL);
    CHECK(answer({out.get(), out.get()}, 1, 1) == EINVAL);
    CHECK(answer({out.get(), out.get()}, 2, 1) == EINVAL);
    CHECK(answer({}, 1, 1) == EINVAL);
    CHECK(answer({out.get(), out.get()}, 0, sandbox::kWorkerGroupsMax) == EINVAL);
    CHECK(answer({out.get(), out.get()}, 0, sandbox::kWorkerGroupsMax - 1) == 0);
    require_ok(sandbox::kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("pid 1 holds its two sockets, its notes and nothing else of the host") {
    if (::geteuid() != 0) {
        return;  // Its /proc directory is closed to everyone else.
    }
    auto sandbox = make_sandbox();
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    const std::string directory = "/proc/" + std::to_string(only_child()) + "/fd";
    std::multiset<std::string> kinds;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        const std::string target = std::filesystem::read_symlink(entry.path());
        const bool own_cgroup =
            target.starts_with("/sys/fs/cgroup/") &&
            target.find("/cellkeep-" + std::to_string(::getpid()) + "-") != std::string::npos &&
            target.ends_with("/workers/cgroup.procs");
        kinds.insert(own_cgroup ? "workers' cgroup" : target.substr(0, target.find('[')));
    }
    CHECK(
        kinds == std::multiset<std::string>{
                     "/dev/null",
                     "/dev/null",
                     "/dev/null",
                     "socket:",
                     "socket:",
                     "anon_inode:",                // signalfd
                     "anon_inode:seccomp notify",  // denial_watch.hpp
                     "/1/oom_score_adj",
                     "workers' cgroup"});
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("30 the peer of a socket is known by its ids, not by a handle to it") {
    // By number: 77 is SO_PEERPIDFD (Linux 6.5), 59 SO_PEERGROUPS, 31 SO_PEERSEC.
    auto sandbox = make_sandbox();
    for (const char* option : {"77", "59", "31", "26"}) {
        const std::vector<std::string> ask{
            "syscall", std::to_string(SYS_getsockopt), "-1", "1", option};
        CHECK(probe_inside(sandbox, ask) == "EPERM");
        CHECK(probe_outside(ask) == "EBADF");
    }
    constexpr const char* kAsk = R"(
import socket, struct
left, right = socket.socketpair()
ids = struct.unpack("iII", left.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
print(ids[1] > 0, left.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE))
try: print(left.getsockopt(socket.SOL_SOCKET, 77))
except OSError as error: print(error.strerror)
)";
    CHECK(run_python(sandbox, kAsk).out == "True 1\nOperation not permitted\n");
    require_ok(sandbox.destroy(kPatience));
    // The control: a kernel with this option gives a descriptor to a process that may ask.
    auto pair = make_socket_pair(SOCK_STREAM);
    REQUIRE(pair.has_value());
    int peer = -1;
    socklen_t size = sizeof(peer);
    const int answered =
        ::getsockopt(pair.value().first.get(), SOL_SOCKET, 77, &peer, &size) == 0 ? 0 : errno;
    const UniqueFd handle(peer);
    CHECK((answered == 0 || answered == ENOPROTOOPT));
}

}  // namespace cellkeep::test
