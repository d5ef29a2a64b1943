// SPDX-License-Identifier: Apache-2.0
//
// What a sandbox leaves in the cgroup tree: nothing, however it ends, or at the latest when the
// kernel has released the last process.
#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/leftovers.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

namespace cellkeep::test {

using sandbox::clear_leftovers;
using sandbox::Policy;
using sandbox::Sandbox;

namespace {

constexpr const char* kManyEaters = R"(
import mmap, os
for _ in range(12):
    if os.fork() == 0: break
while True:
    held = mmap.mmap(-1, 30 << 20)
    for i in range(0, len(held), 4096): held[i] = 1
)";

std::vector<std::string> session_cgroups() {
    return cgroups_of(::getpid());
}

/// Puts a process into every cgroup of the sandbox under test whose tree has no cgroup.kill. It
/// looks like a dying process that the kernel holds. Returns -1 if there is no such tree, as on a
/// v2 host.
pid_t intrude() {
    std::vector<std::string> unkillable;
    for (const std::string& directory : session_cgroups()) {
        if (directory.find("/session-") != std::string::npos &&
            !std::filesystem::exists(directory + "/cgroup.kill")) {
            unkillable.push_back(directory);
        }
    }
    if (unkillable.empty()) {
        return -1;
    }
    const pid_t stranger = ::fork();
    REQUIRE(stranger >= 0);
    if (stranger == 0) {
        (void)::pause();
        ::_exit(0);
    }
    for (const std::string& directory : unkillable) {
        require_ok(write_control_file(directory + "/cgroup.procs", std::to_string(stranger)));
    }
    return stranger;
}

void end(pid_t stranger) {
    REQUIRE(::kill(stranger, SIGKILL) == 0);
    REQUIRE(::waitpid(stranger, nullptr, 0) == stranger);
}

}  // namespace

TEST_CASE("sessions that end in the middle of running out of memory leave no cgroup") {
    if (::geteuid() != 0) {
        return;  // Without cgroups there is nothing to leave.
    }
    Policy policy = test_policy();
    policy.limits.memory_bytes = 64ULL << 20U;
    for (std::uint64_t round = 0; round < 6; ++round) {
        auto sandbox = make_sandbox(policy);
        auto worker = start_inside(sandbox, {"/usr/bin/python3", "-c", kManyEaters});
        const auto deadline = std::chrono::steady_clock::now() + kPatience;
        while (sandbox.usage().value().oom_kills < round) {
            REQUIRE(std::chrono::steady_clock::now() < deadline);
        }
        require_ok(sandbox.destroy(kPatience));
        CHECK(wait_readable(worker.pidfd.get()));
    }
    CHECK(session_cgroups().empty());
}

TEST_CASE("a cgroup that is busy past the patience of destroy is removed by a later call") {
    if (::geteuid() != 0) {
        return;
    }
    pid_t stranger = -1;
    {
        auto sandbox = make_sandbox();
        stranger = intrude();
        if (stranger < 0) {
            return;
        }
        const auto ended = sandbox.destroy();
        REQUIRE(ended.has_error());
        CHECK(ended.error().errno_value() == EBUSY);
    }
    CHECK(clear_leftovers() == 1);
    CHECK_FALSE(session_cgroups().empty());
    end(stranger);
    require_ok(make_sandbox().destroy(kPatience));
    CHECK(clear_leftovers() == 0);
    CHECK(session_cgroups().empty());
}

TEST_CASE("sandboxes whose making fails leave no cgroup either") {
    if (::geteuid() != 0) {
        return;
    }
    Policy policy = test_policy();
    policy.read_only.push_back({"/no/such/path", "/opt/data"});
    for (int i = 0; i < 5; ++i) {
        CHECK(Sandbox::create(policy).has_error());
    }
    require_ok(sandbox::sweep_leftovers());
    CHECK(session_cgroups().empty());
}

TEST_CASE("a spinning session at its quota does not keep kill_workers waiting") {
    Policy policy = test_policy();
    policy.limits.cpu_cores = 0.05;
    auto sandbox = make_sandbox(policy);
    auto worker = start_inside(
        sandbox,
        {"/usr/bin/python3", "-c", "import os\nfor _ in range(5): os.fork()\nwhile True: pass\n"});
    if (::geteuid() == 0) {
        const auto deadline = std::chrono::steady_clock::now() + kPatience;
        while (sandbox.usage().value().processes < 20) {
            REQUIRE(std::chrono::steady_clock::now() < deadline);
        }
    }
    for (int round = 0; round < 3; ++round) {
        require_ok(sandbox.kill_workers(std::chrono::seconds(5)));
        CHECK(wait_readable(worker.pidfd.get()));
        CHECK(wait_event(sandbox).worker.signaled);
        worker = start_inside(sandbox, {"/usr/bin/python3", "-c", "while True: pass"});
    }
    // The CPU quota is in force again: 0.02 s of CPU time take 0.2 s or more of wall time.
    require_ok(sandbox.kill_workers(kPatience));
    CHECK(wait_event(sandbox).worker.signaled);
    if (::geteuid() == 0) {
        CHECK(
            run_python(sandbox, R"(
import time
wall, used = time.monotonic(), time.process_time()
while time.process_time() < used + 0.03: pass
print(time.monotonic() - wall >= 0.2)
)")
                .out == "True\n");
    }
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
