// SPDX-License-Identifier: Apache-2.0
//
// Processes that a worker has forked as children of pid 1 become workers.
#include "protocol/support/syscall.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/held_process.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace cellkeep::test {

using sandbox::kSleepingGroup;
using sandbox::Sandbox;
using sandbox::SandboxEvent;
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

struct Family {
    sandbox::WorkerId parent = 0;
    pid_t sibling = 0;  // numbers inside
    pid_t child = 0;
    pid_t own = 0;
};

Family start_family(Sandbox& sandbox) {
    auto out = make_pipe();
    REQUIRE(out.has_value());
    WorkerSpec spec;
    spec.argv = {"/usr/bin/python3", "-c", kForkSibling};
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

Result<sandbox::Worker> adopt(Sandbox& sandbox, pid_t forked, sandbox::WorkerGroup group) {
    WorkerSpec spec;
    spec.forked = forked;
    spec.group = group;
    return sandbox.start(std::move(spec));
}

std::string read_of(pid_t pid, const std::string& file) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a fork that sleeps is adopted, and no sweep of another group takes it") {
    auto sandbox = make_sandbox();
    const Family family = start_family(sandbox);
    auto adopted = adopt(sandbox, family.sibling, kSleepingGroup);
    INFO((adopted.has_error() ? adopted.error().message() : ""));
    REQUIRE(adopted.has_value());
    const pid_t outside = pid_of(adopted.value().pidfd.get());
    if (::geteuid() == 0) {
        CHECK_THAT(read_of(outside, "cgroup"), Catch::Contains("/workers-8\n"));
        CHECK(read_of(outside, "oom_score_adj") == "0\n");
    }
    require_ok(sandbox.begin_sweep(0));
    const auto ended = wait_event(sandbox);
    CHECK(ended.kind == SandboxEvent::Kind::kWorkerExited);
    CHECK(ended.worker.id == family.parent);
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kGroupSwept);
    // What the worker had forked for itself is gone; the adopted one is as it was.
    CHECK_FALSE(read_of(outside, "stat").empty());
    CHECK(run_python(sandbox, "import os; print(os.getppid())").out == "1\n");
    // Its end is reported like any worker's.
    require_ok(sandbox.begin_sweep(kSleepingGroup));
    const auto last = wait_event(sandbox);
    CHECK(last.kind == SandboxEvent::Kind::kWorkerExited);
    CHECK(last.worker.id == adopted.value().id);
    CHECK(last.worker.signaled);
    require_ok(sandbox.destroy());
}

TEST_CASE("a fork that goes on in a group is swept with it, and dies before what sleeps") {
    auto sandbox = make_sandbox();
    const Family family = start_family(sandbox);
    const auto adopted = adopt(sandbox, family.sibling, 1);
    REQUIRE(adopted.has_value());
    if (::geteuid() == 0) {
        CHECK(read_of(pid_of(adopted.value().pidfd.get()), "oom_score_adj") == "1000\n");
    }
    require_ok(sandbox.begin_sweep(1));
    CHECK(wait_event(sandbox).worker.id == adopted.value().id);
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kGroupSwept);
    require_ok(sandbox.destroy());
}

TEST_CASE("a guest can name no process but a live child of pid 1 that is no worker yet") {
    auto sandbox = make_sandbox();
    const Family family = start_family(sandbox);
    const auto refused = [&](pid_t forked) {
        const auto adopted = adopt(sandbox, forked, kSleepingGroup);
        REQUIRE(adopted.has_error());
        return adopted.error().errno_value();
    };
    CHECK(refused(family.child) == ECHILD);  // another one's child
    CHECK(refused(family.own) == EEXIST);    // a worker
    CHECK(refused(4'000'000) == ECHILD);     // none
    CHECK(refused(::getpid()) == ECHILD);    // one of the host's, at most by chance one inside
    for (const pid_t none : {1, -1, -family.sibling}) {
        const auto adopted = adopt(sandbox, none, kSleepingGroup);
        REQUIRE(adopted.has_error());
        CHECK(adopted.error().code() == ErrorCode::kInvalidArgument);
    }
    CHECK(adopt(sandbox, family.sibling, sandbox::kWorkerGroupsMax).has_error());
    REQUIRE(adopt(sandbox, family.sibling, kSleepingGroup).has_value());
    CHECK(refused(family.sibling) == EEXIST);
    require_ok(sandbox.destroy());
}

TEST_CASE("an adoption has nothing that only a start has") {
    auto sandbox = make_sandbox();
    const Family family = start_family(sandbox);
    WorkerSpec spec;
    spec.forked = family.sibling;
    SECTION("a program") {
        spec.argv = {"/usr/bin/true"};
    }
    SECTION("variables") {
        spec.env = {"A=1"};
    }
    SECTION("descriptors") {
        spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    }
    SECTION("warmth") {
        spec.warm = true;
    }
    const auto adopted = sandbox.start(std::move(spec));
    REQUIRE(adopted.has_error());
    CHECK(adopted.error().code() == ErrorCode::kInvalidArgument);
    require_ok(sandbox.destroy());
}

}  // namespace cellkeep::test
