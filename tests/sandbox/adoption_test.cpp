// SPDX-License-Identifier: Apache-2.0
//
// Processes that a worker has forked as children of pid 1 become workers.
#include "protocol/support/syscall.hpp"
#include "sandbox/server/branch_place.hpp"
#include "tests/sandbox/family.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/held_process.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace cellkeep::test {

using sandbox::kSleepingGroup;
using sandbox::Sandbox;
using sandbox::SandboxEvent;
using sandbox::WorkerSpec;

namespace {

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
    require_ok(sandbox.destroy(kPatience));
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
    require_ok(sandbox.destroy(kPatience));
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
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE(
    "a fork that is to sleep stays where it was born until it is moved, and so long no sweep "
    "begins") {
    auto sandbox = make_sandbox();
    const Family family = start_family(sandbox);
    CHECK_FALSE(sandbox.has_stray_sleepers());
    const auto sleeper = must_adopt(sandbox, family.sibling, kSleepingGroup, 0);
    const pid_t outside = pid_of(sleeper.pidfd.get());
    if (::geteuid() != 0) {
        CHECK_FALSE(sandbox.has_stray_sleepers());  // there are no cgroups
        return;
    }
    CHECK_THAT(read_of(outside, "cgroup"), Catch::Contains("/workers\n"));
    REQUIRE(sandbox.has_stray_sleepers());
    require_ok(sandbox.begin_sweep(0));
    // It waits: what it would kill answers.
    CHECK(run_python(sandbox, "print('still')").out == "still\n");
    CHECK_FALSE(read_of(outside, "stat").empty());
    SECTION("it is moved, and the sweep takes the others") {
        require_ok(sandbox::move_to_cgroups(sleeper.pidfd, {sandbox.sleepers_file()}));
        CHECK_THAT(read_of(outside, "cgroup"), Catch::Contains("/workers-8\n"));
        require_ok(sandbox.sleepers_moved());
        CHECK_FALSE(sandbox.has_stray_sleepers());
        CHECK(wait_event(sandbox).worker.id == family.parent);
        CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kGroupSwept);
        CHECK_FALSE(read_of(outside, "stat").empty());
        require_ok(sandbox.begin_sweep(kSleepingGroup));
        CHECK(wait_event(sandbox).worker.id == sleeper.id);
    }
    SECTION("it is not moved, and the sweep takes it, too") {
        require_ok(sandbox.sleepers_moved());
        std::set<sandbox::WorkerId> ended;
        ended.insert(wait_event(sandbox).worker.id);
        ended.insert(wait_event(sandbox).worker.id);
        CHECK(ended == std::set<sandbox::WorkerId>{family.parent, sleeper.id});
    }
    SECTION("a sweep of everything waits for nothing") {
        require_ok(sandbox.begin_sweep());
        std::set<sandbox::WorkerId> ended;
        ended.insert(wait_event(sandbox).worker.id);
        ended.insert(wait_event(sandbox).worker.id);
        CHECK(ended == std::set<sandbox::WorkerId>{family.parent, sleeper.id});
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("what goes on from a sleeper has the sleepers' cgroup, and they are to have the other") {
    if (::geteuid() != 0) {
        return;  // there are no cgroups
    }
    auto sandbox = make_sandbox();
    // The worker of the sleepers' group is the sleeper, and the process that it forks goes on.
    const Family family = start_family(sandbox, kSleepingGroup);
    const auto woken = must_adopt(sandbox, family.sibling, 0, kSleepingGroup);
    CHECK_THAT(read_of(pid_of(woken.pidfd.get()), "cgroup"), Catch::Contains("/workers-8\n"));
    REQUIRE(sandbox.has_stray_sleepers());
    CHECK_THAT(sandbox.sleepers_file(), Catch::EndsWith("/workers/cgroup.procs"));
    // What is started in the group meanwhile is where it would be swept.
    const std::string cgroup =
        run_inside(sandbox, {"/usr/bin/grep", "^0:", "/proc/self/cgroup"}).out;
    CHECK(cgroup == "0::/workers-8\n");
    require_ok(sandbox.begin_sweep(0));
    CHECK(run_python(sandbox, "print('still')").out == "still\n");
    // Nobody has moved the sleeper, so it is taken as well.
    require_ok(sandbox.sleepers_moved());
    std::set<sandbox::WorkerId> ended;
    ended.insert(wait_event(sandbox).worker.id);
    ended.insert(wait_event(sandbox).worker.id);
    CHECK(ended == std::set<sandbox::WorkerId>{family.parent, woken.id});
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kGroupSwept);
    // The next one is in the cgroup that the group has now, and goes on from a sleeper as the
    // first.
    const Family next = start_family(sandbox, kSleepingGroup);
    const auto again = must_adopt(sandbox, next.sibling, 0, kSleepingGroup);
    CHECK_THAT(read_of(pid_of(again.pidfd.get()), "cgroup"), Catch::Contains("/workers\n"));
    CHECK_THAT(sandbox.sleepers_file(), Catch::EndsWith("/workers-8/cgroup.procs"));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a process that was born elsewhere than it should is killed") {
    if (::geteuid() != 0) {
        return;  // there are no cgroups
    }
    auto sandbox = make_sandbox();
    const Family family = start_family(sandbox);
    REQUIRE(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    const auto adopted = adopt(sandbox, family.sibling, kSleepingGroup, kSleepingGroup);
    REQUIRE(adopted.has_error());
    CHECK(adopted.error().code() == ErrorCode::kProtocol);
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kWorkerExited);
    CHECK_FALSE(sandbox.has_stray_sleepers());
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("only a group that there is can be where a process was born, and only of one that was") {
    auto sandbox = make_sandbox();
    const Family family = start_family(sandbox);
    const auto wrong = adopt(sandbox, family.sibling, 0, sandbox::kWorkerGroupsMax);
    REQUIRE(wrong.has_error());
    CHECK(wrong.error().code() == ErrorCode::kInvalidArgument);
    WorkerSpec spec;
    spec.argv = {"/usr/bin/true"};
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.born_in = 0;
    const auto unborn = sandbox.start(std::move(spec));
    REQUIRE(unborn.has_error());
    CHECK(unborn.error().code() == ErrorCode::kInvalidArgument);
    require_ok(sandbox.destroy(kPatience));
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
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
