// SPDX-License-Identifier: Apache-2.0
#include "tests/sandbox/family.hpp"

#include "protocol/support/syscall.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

namespace cellkeep::test {

using sandbox::Sandbox;
using sandbox::WorkerSpec;

namespace {

/// clone(CLONE_PARENT | SIGCHLD): the child sleeps in a process session of its own. When it has
/// that, the parent tells its number and goes on.
constexpr const char* kForkSibling =
    "import ctypes, os, sys, time\n"
    "told, tell = os.pipe()\n"
    "pid = ctypes.CDLL(None).syscall(56, 0x8000 | 17, 0, 0, 0, 0)\n"
    "if pid == 0:\n"
    "    os.setsid(); os.close(1); os.write(tell, b'.'); time.sleep(1000)\n"
    "os.read(told, 1)\n"
    "own = os.fork()\n"
    "if own == 0:\n"
    "    os.close(1); time.sleep(1000)\n"
    "print(pid, own, os.getpid(), flush=True)\n"
    "os.close(1)\n"
    "time.sleep(1000)\n";

}  // namespace

Family start_family(Sandbox& sandbox, sandbox::WorkerGroup group) {
    auto out = make_pipe();
    REQUIRE(out.has_value());
    WorkerSpec spec;
    spec.argv = {"/usr/bin/python3", "-c", kForkSibling};
    spec.group = group;
    spec.stdout_fd = std::move(out.value().write_end);
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const auto worker = sandbox.start(std::move(spec));
    REQUIRE(worker.has_value());
    std::string text;
    std::array<char, 64> buffer{};
    while (text.find('\n') == std::string::npos) {
        REQUIRE(wait_readable(out.value().read_end.get()));
        const ssize_t got = ::read(out.value().read_end.get(), buffer.data(), buffer.size());
        REQUIRE(got > 0);
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    Family family;
    family.parent = worker.value().id;
    REQUIRE(
        std::sscanf(text.c_str(), "%d %d %d", &family.sibling, &family.child, &family.own) == 3);
    return family;
}

Result<sandbox::Worker> adopt(
    Sandbox& sandbox,
    pid_t forked,
    sandbox::WorkerGroup group,
    std::optional<sandbox::WorkerGroup> born_in) {
    WorkerSpec spec;
    spec.forked = forked;
    spec.group = group;
    spec.born_in = born_in;
    return sandbox.start(std::move(spec));
}

sandbox::Worker must_adopt(
    Sandbox& sandbox, pid_t forked, sandbox::WorkerGroup group, sandbox::WorkerGroup born_in) {
    auto adopted = adopt(sandbox, forked, group, born_in);
    INFO((adopted.has_error() ? adopted.error().message() : ""));
    REQUIRE(adopted.has_value());
    return std::move(adopted).value();
}

}  // namespace cellkeep::test
