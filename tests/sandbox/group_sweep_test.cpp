// SPDX-License-Identifier: Apache-2.0
//
// Killing one group of workers while others go on.
#include "protocol/support/syscall.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/held_process.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::test {

using sandbox::Sandbox;
using sandbox::SandboxEvent;
using sandbox::WorkerGroup;
using sandbox::WorkerSpec;

namespace {

Result<sandbox::Worker> start_in(
    Sandbox& sandbox, WorkerGroup group, std::vector<std::string> argv) {
    WorkerSpec spec;
    spec.argv = std::move(argv);
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.group = group;
    return sandbox.start(std::move(spec));
}

sandbox::Worker must_start(Sandbox& sandbox, WorkerGroup group, std::vector<std::string> argv) {
    auto worker = start_in(sandbox, group, std::move(argv));
    INFO((worker.has_error() ? worker.error().message() : ""));
    REQUIRE(worker.has_value());
    return std::move(worker).value();
}

bool has_cgroups() {
    return ::geteuid() == 0;
}

/// What counts the `sleep` processes inside with this argument.
std::string counting(const std::string& seconds) {
    return "import os, time\n"
           "def count():\n"
           "    n = 0\n"
           "    for p in os.listdir('/proc'):\n"
           "        if not p.isdigit(): continue\n"
           "        try: line = open(f'/proc/{p}/cmdline', 'rb').read().split(b'\\0')\n"
           "        except OSError: continue\n"
           "        n += line[:2] == [b'sleep', b'" +
           seconds + "']\n    return n\n";
}

std::string count_sleeps(Sandbox& sandbox, const std::string& seconds) {
    return run_python(sandbox, counting(seconds) + "print(count())").out;
}

/// A shell has its children before they are what they will be.
void wait_for_sleeps(Sandbox& sandbox, const std::string& seconds, int count) {
    const std::string code =
        counting(seconds) + "while count() < " + std::to_string(count) + ": time.sleep(0.01)\n";
    REQUIRE(run_python(sandbox, code).status == 0);
}

}  // namespace

TEST_CASE("the sweep of a group takes its workers and what they lead, and nothing else") {
    auto sandbox = make_sandbox();
    const auto other =
        must_start(sandbox, 0, {"/usr/bin/sh", "-c", "sleep 1000 & setsid sleep 1000 & wait"});
    const auto one = must_start(sandbox, 1, {"/usr/bin/sh", "-c", "sleep 2000 & wait"});
    wait_for_sleeps(sandbox, "1000", 2);
    wait_for_sleeps(sandbox, "2000", 1);
    require_ok(sandbox.begin_sweep(1));
    const auto exit = wait_event(sandbox);
    CHECK(exit.kind == SandboxEvent::Kind::kWorkerExited);
    CHECK(exit.worker.id == one.id);
    CHECK(exit.worker.signaled);
    const auto swept = wait_event(sandbox);
    CHECK(swept.kind == SandboxEvent::Kind::kGroupSwept);
    CHECK(swept.group == 1);
    if (has_cgroups()) {
        CHECK(count_sleeps(sandbox, "2000") == "0\n");
    }
    CHECK(count_sleeps(sandbox, "1000") == "2\n");
    // Both go on: the other group's worker lives, and the swept group has room for a new one.
    CHECK_FALSE(sandbox.next_event().value().has_value());
    const auto again = must_start(sandbox, 1, {"/usr/bin/true"});
    CHECK(wait_event(sandbox).worker.id == again.id);
    require_ok(sandbox.kill_workers(kPatience));
    CHECK(wait_event(sandbox).worker.id == other.id);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("beside other workers a start waits for none, and its failure comes with the exit") {
    auto sandbox = make_sandbox();
    // Alone, the failure is returned at once.
    const auto refused = start_in(sandbox, 1, {"/usr/bin/no-such-program"});
    REQUIRE(refused.has_error());
    CHECK_THAT(refused.error().message(), Catch::Contains("No such file"));
    // A worker of the same user: it can stop a new process before that becomes its program.
    auto said = make_pipe();
    REQUIRE(said.has_value());
    WorkerSpec stopper;
    stopper.argv = {
        "/usr/bin/python3",
        "-c",
        "import os, signal\n"
        "os.write(1, b'x')\n"
        "while True:\n"
        "    try: os.kill(-1, signal.SIGSTOP)\n"
        "    except ProcessLookupError: pass"};
    stopper.stdout_fd = std::move(said.value().write_end);
    stopper.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    REQUIRE(sandbox.start(std::move(stopper)).has_value());
    REQUIRE(wait_readable(said.value().read_end.get()));
    for (int index = 0; index < 5; ++index) {
        (void)must_start(sandbox, 1, {"/usr/bin/true"});
    }
    require_ok(sandbox.kill_workers(kPatience));
    while (sandbox.next_event().value().has_value()) {
    }
    (void)must_start(sandbox, 0, {"/usr/bin/sleep", "1000"});
    const auto failing = must_start(sandbox, 1, {"/usr/bin/no-such-program"});
    const auto exit = wait_event(sandbox);
    CHECK(exit.worker.id == failing.id);
    CHECK_FALSE(exit.worker.signaled);
    CHECK_THAT(exit.worker.failure, Catch::Contains("exec") && Catch::Contains("No such file"));
    const auto working = must_start(sandbox, 1, {"/usr/bin/true"});
    const auto worked = wait_event(sandbox);
    CHECK(worked.worker.id == working.id);
    CHECK(worked.worker.failure.empty());
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("the sweep of a group leaves the session's share of the processors as it is") {
    const auto quotas = [] {
        std::vector<std::string> found;
        for (const std::string& cgroup : cgroups_of(::getpid())) {
            for (const char* file : {"/cpu.max", "/cpu.cfs_quota_us"}) {
                std::ifstream in(cgroup + file);
                if (std::string text; std::getline(in, text)) {
                    found.push_back(cgroup + file + " " + text);
                }
            }
        }
        return found;
    };
    auto sandbox = make_sandbox();
    (void)must_start(sandbox, 0, {"/usr/bin/sleep", "1000"});
    (void)must_start(sandbox, 1, {"/usr/bin/sleep", "1000"});
    const auto before = quotas();
    CHECK(before.empty() == !has_cgroups());
    require_ok(sandbox.begin_sweep(1));
    CHECK(quotas() == before);
    // The control: a sweep of all lifts it, because no process is left to use it.
    require_ok(sandbox.begin_sweep());
    CHECK((quotas() != before) == has_cgroups());
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("with cgroups, what has left a worker's process group is swept with its group") {
    if (!has_cgroups()) {
        return;  // Only a cgroup can tell whose it is (SECURITY.md, section 11).
    }
    auto sandbox = make_sandbox();
    const auto worker = must_start(
        sandbox,
        2,
        {"/usr/bin/sh", "-c", "setsid sh -c 'sleep 2000 & touch /tmp/ready; wait' & wait"});
    REQUIRE(
        run_inside(sandbox, {"/usr/bin/sh", "-c", "until [ -e /tmp/ready ]; do sleep 0.01; done"})
            .status == 0);
    require_ok(sandbox.begin_sweep(2));
    CHECK(wait_event(sandbox).worker.id == worker.id);
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kGroupSwept);
    CHECK(count_sleeps(sandbox, "2000") == "0\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("what a worker that has ended left in its process group is swept, too") {
    auto sandbox = make_sandbox();
    const auto worker = must_start(sandbox, 3, {"/usr/bin/sh", "-c", "sleep 2000 & exit 0"});
    CHECK(wait_event(sandbox).worker.id == worker.id);
    wait_for_sleeps(sandbox, "2000", 1);
    require_ok(sandbox.begin_sweep(3));
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kGroupSwept);
    // Without a cgroup the sweep does not wait for its end: it has its signal.
    CHECK(
        run_inside(
            sandbox,
            {"/usr/bin/sh", "-c", "while pgrep -f 'sleep 200[0]' > /dev/null; do sleep 0.01; done"})
            .status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("while one of a group has not ended, only that group cannot start") {
    auto sandbox = make_sandbox();
    const auto worker = must_start(sandbox, 1, {"/usr/bin/sleep", "1000"});
    auto held = HeldProcess::hold(pid_of(worker.pidfd.get()));
    REQUIRE(held.has_value());
    require_ok(sandbox.begin_sweep(1));
    const auto refused = start_in(sandbox, 1, {"/usr/bin/true"});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kUnavailable);
    CHECK(refused.error().message().find("not all ended") != std::string::npos);
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    held.value().release();
    CHECK(wait_event(sandbox).worker.id == worker.id);
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kGroupSwept);
    const auto again = must_start(sandbox, 1, {"/usr/bin/true"});
    CHECK(wait_event(sandbox).worker.id == again.id);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a sweep of an empty group is over at once, and there is no group past the last") {
    auto sandbox = make_sandbox();
    for (WorkerGroup group = 0; group < sandbox::kWorkerGroupsMax; ++group) {
        require_ok(sandbox.begin_sweep(group));
        const auto swept = wait_event(sandbox);
        CHECK(swept.kind == SandboxEvent::Kind::kGroupSwept);
        CHECK(swept.group == group);
    }
    const auto swept = sandbox.begin_sweep(sandbox::kWorkerGroupsMax);
    REQUIRE(swept.has_error());
    CHECK(swept.error().code() == ErrorCode::kInvalidArgument);
    const auto started = start_in(sandbox, sandbox::kWorkerGroupsMax, {"/usr/bin/true"});
    REQUIRE(started.has_error());
    CHECK(started.error().code() == ErrorCode::kInvalidArgument);
    require_ok(sandbox.destroy(kPatience));
    const auto late = sandbox.begin_sweep(1);
    REQUIRE(late.has_error());
    CHECK(late.error().code() == ErrorCode::kConflict);
}

TEST_CASE("a sweep of everything takes every group") {
    auto sandbox = make_sandbox();
    for (WorkerGroup group = 0; group < 3; ++group) {
        (void)must_start(sandbox, group, {"/usr/bin/sleep", "1000"});
    }
    require_ok(sandbox.begin_sweep());
    for (int i = 0; i < 3; ++i) {
        CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kWorkerExited);
    }
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kSwept);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("the CPU time of a group is its own, where there are cgroups") {
    auto sandbox = make_sandbox();
    if (!has_cgroups()) {
        const auto unknown = sandbox.cpu_time(0);
        REQUIRE(unknown.has_error());
        CHECK(unknown.error().code() == ErrorCode::kUnavailable);
        return;
    }
    CHECK(sandbox.cpu_time(1).has_error());  // It has had no worker.
    const auto busy = must_start(
        sandbox,
        1,
        {"/usr/bin/python3", "-c", "import time\nwhile time.process_time() < 0.3: pass"});
    CHECK(wait_event(sandbox).worker.id == busy.id);
    CHECK(sandbox.cpu_time(1).value() >= std::chrono::milliseconds(300));
    CHECK(sandbox.cpu_time(0).value() < std::chrono::milliseconds(300));
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
