// SPDX-License-Identifier: Apache-2.0
//
// The cgroup that the workers are in and pid 1 is not, and the counters of the session's limits.
#include "protocol/support/syscall.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::Sandbox;

namespace {

/// The cgroup directory of the session's workers; empty on a host without one.
std::string worker_directory() {
    for (const std::string& directory : cgroups_of(::getpid())) {
        if (directory.ends_with("/workers")) {
            return directory;
        }
    }
    return {};
}

std::string procs_of(const std::string& directory) {
    return read_file(directory + "/cgroup.procs", 65'536).value();
}

}  // namespace

TEST_CASE("workers and all they start are in a cgroup of their own, and pid 1 is not") {
    auto sandbox = make_sandbox();
    const std::string leaf = worker_directory();
    if (leaf.empty()) {
        CHECK(::geteuid() != 0);  // An ordinary user has no cgroups here.
        return;
    }
    CHECK(procs_of(leaf).empty());
    const std::string session = leaf.substr(0, leaf.rfind('/'));
    CHECK(procs_of(session) == std::to_string(only_child()) + "\n");
    const auto worker =
        start_inside(sandbox, {"/usr/bin/sh", "-c", "setsid sleep 1000 & exec sleep 1000"});
    CHECK(procs_of(session) == std::to_string(only_child()) + "\n");
    CHECK_FALSE(procs_of(leaf).empty());
    // Inside, its name says nothing of the host.
    CHECK(
        run_inside(sandbox, {"/usr/bin/grep", "^0:", "/proc/self/cgroup"}).out == "0::/workers\n");
    require_ok(sandbox.kill_workers(kPatience));
    CHECK(wait_event(sandbox).worker.id == worker.id);
    CHECK(procs_of(leaf).empty());
    CHECK(procs_of(session) == std::to_string(only_child()) + "\n");
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
    CHECK(worker_directory().empty());
}

TEST_CASE("workers can be killed without any help of pid 1's") {
    if (::geteuid() != 0) {
        return;  // That takes a cgroup.
    }
    auto sandbox = make_sandbox();
    const auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    const pid_t pid1 = only_child();
    REQUIRE(::kill(pid1, SIGSTOP) == 0);
    const auto killed = sandbox.kill_workers(std::chrono::milliseconds(1));
    REQUIRE(killed.has_error());  // Pid 1 cannot say that all are reaped.
    CHECK(killed.error().code() == ErrorCode::kTimeout);
    CHECK(wait_readable(worker.pidfd.get()));
    REQUIRE(::kill(pid1, SIGCONT) == 0);
    CHECK(wait_event(sandbox).worker.signaled);
    require_ok(sandbox.kill_workers(kPatience));
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE(
    "forks that the process limit refused are counted, and so are deaths of the memory limit") {
    if (::geteuid() != 0) {
        return;  // That takes a cgroup.
    }
    Policy policy = test_policy();
    policy.limits.processes = 10;
    policy.limits.memory_bytes = 64ULL << 20U;
    auto sandbox = make_sandbox(policy);
    CHECK(sandbox.usage().value().process_refusals == 0);
    const Ran forks = run_python(sandbox, R"(
import os, errno
children = []
for _ in range(20):
    try: pid = os.fork()
    except OSError as error: print(errno.errorcode[error.errno]); break
    if pid == 0: import signal; signal.pause()
    children.append(pid)
for pid in children: os.kill(pid, 9)
)");
    CHECK(forks.out == "EAGAIN\n");
    CHECK(sandbox.usage().value().process_refusals > 0);
    CHECK(run_python(sandbox, "bytearray(200 << 20)").signaled);
    CHECK(sandbox.usage().value().oom_kills > 0);
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
