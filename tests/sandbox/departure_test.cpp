// SPDX-License-Identifier: Apache-2.0
//
// How an interpreter leaves for one that is there already. As root: it takes cgroups.
#include "kernel-manager/session/checkpoints/departure.hpp"

#include "tests/sandbox/family.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/held_process.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <poll.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

namespace cellkeep::test {

using sandbox::kSleepingGroup;
using sandbox::Sandbox;
using session::Departure;

namespace {

struct Leaving {
    boost::asio::io_context io{1};
    Sandbox sandbox = make_sandbox();
    int gone = 0;
    Departure departure{
        io,
        {.halt = [this] { return sandbox.halt(0); },
         .give_way = [this] { return sandbox.give_way(0); },
         .gone = [this] { ++gone; }},
        [] { return std::make_shared<int>(); }};
    std::optional<bool> halted;

    bool begin() {
        (void)sandbox.sleepers_file();  // makes their cgroup, as the first checkpoint does
        return begin_without_sleepers();
    }
    bool begin_without_sleepers() {
        return departure.begin([this](bool done) { halted = done; });
    }
    void run_until_halted() {
        while (!halted.has_value()) {
            io.restart();
            (void)io.run_one();
        }
    }
    /// Until nothing is left to do.
    void run() {
        io.restart();
        (void)io.run();
    }
};

/// Fails the test case if one of them lives in the cgroup that was the interpreter's.
void check_empty(Sandbox& sandbox) {
    auto leaf = sandbox.halt(kSleepingGroup);
    REQUIRE(leaf.has_value());
    CHECK(leaf.value().is_empty());
}

/// A process in a process session of its own, whose first thread has ended. Another goes on.
void start_headless(Sandbox& sandbox) {
    const Ran ran = run_python(
        sandbox,
        "import ctypes, os, threading, time\n"
        "told, tell = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); os.close(1); os.close(2)\n"
        "    def go_on():\n"
        "        while open('/proc/self/stat').read().rsplit(')', 1)[1].split()[0] != 'Z': pass\n"
        "        os.write(tell, b'.'); time.sleep(1000)\n"
        "    threading.Thread(target=go_on).start()\n"
        "    ctypes.CDLL(None).syscall(60, 0)\n"
        "print(os.read(told, 1))\n");
    REQUIRE(ran.out == "b'.'\n");
}

bool runs(const sandbox::Worker& worker) {
    pollfd ended{worker.pidfd.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) == 0;
}

}  // namespace

TEST_CASE("what departs has stopped before it has ended, with all that it has started") {
    if (::geteuid() != 0) {
        return;
    }
    Leaving f;
    const Family family = start_family(f.sandbox);
    REQUIRE(f.begin());
    CHECK_FALSE(f.departure.begin([](bool) { FAIL("one at a time"); }));
    f.run_until_halted();
    CHECK(f.halted == true);
    CHECK(f.departure.is_under_way());
    CHECK_FALSE(f.sandbox.next_event().value().has_value());
    SECTION("when it is asked for") {
        f.departure.end();
    }
    SECTION("after a while") {}
    f.run();
    CHECK(f.gone == 1);
    CHECK_FALSE(f.departure.is_under_way());
    const auto ended = wait_event(f.sandbox);
    CHECK(ended.kind == sandbox::SandboxEvent::Kind::kWorkerExited);
    CHECK(ended.worker.id == family.parent);
    check_empty(f.sandbox);
    // The cgroup is thawed: what comes into it later runs.
    (void)start_family(f.sandbox, kSleepingGroup);
    require_ok(f.sandbox.destroy(kPatience));
}

TEST_CASE("what starts while others depart is not among them") {
    if (::geteuid() != 0) {
        return;
    }
    Leaving f;
    const Family family = start_family(f.sandbox);
    REQUIRE(f.begin());
    f.run_until_halted();
    REQUIRE(f.halted == true);
    // No fork of a copy: a restart, after the adoption of one has failed.
    const auto fresh = start_inside(f.sandbox, {"/usr/bin/sleep", "1000"});
    CHECK(f.sandbox.has_stray_sleepers());
    f.departure.end();
    f.run();
    CHECK(wait_event(f.sandbox).worker.id == family.parent);
    check_empty(f.sandbox);
    CHECK(runs(fresh));
    require_ok(f.sandbox.destroy(kPatience));
}

TEST_CASE("what departs ends although its first thread has ended before") {
    if (::geteuid() != 0) {
        return;
    }
    Leaving f;
    (void)start_family(f.sandbox);
    start_headless(f.sandbox);
    REQUIRE(f.begin());
    f.run_until_halted();
    f.departure.end();
    f.run();
    check_empty(f.sandbox);
    require_ok(f.sandbox.destroy(kPatience));
}

TEST_CASE("a sweep ends what has left its process group and has no first thread any more") {
    if (::geteuid() != 0) {
        return;
    }
    Sandbox sandbox = make_sandbox();
    (void)start_family(sandbox);
    start_headless(sandbox);
    require_ok(sandbox.begin_sweep(0));
    while (wait_event(sandbox).kind != sandbox::SandboxEvent::Kind::kGroupSwept) {
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("without a cgroup of sleepers nothing departs, and all go on") {
    if (::geteuid() != 0) {
        return;
    }
    Leaving f;
    (void)start_family(f.sandbox);
    REQUIRE(f.begin_without_sleepers());
    f.run_until_halted();
    CHECK(f.halted == false);
    f.run();
    CHECK_FALSE(f.sandbox.next_event().value().has_value());
    CHECK(run_python(f.sandbox, "print('still')").out == "still\n");
    require_ok(f.sandbox.destroy(kPatience));
}

TEST_CASE("nothing departs from a cgroup in which a copy sleeps") {
    if (::geteuid() != 0) {
        return;
    }
    Leaving f;
    const Family family = start_family(f.sandbox);
    const auto sleeper = must_adopt(f.sandbox, family.sibling, kSleepingGroup, 0);
    CHECK_FALSE(f.begin());
    CHECK(run_python(f.sandbox, "print('still')").out == "still\n");
    f.run();
    CHECK_FALSE(f.halted.has_value());
    require_ok(f.sandbox.destroy(kPatience));
}

TEST_CASE("a session that ends does not wait for a departure") {
    if (::geteuid() != 0) {
        return;
    }
    Leaving f;
    const Family family = start_family(f.sandbox);
    REQUIRE(f.begin());
    SECTION("of what has not stopped") {
        f.departure.close();
        f.run();
        CHECK_FALSE(f.halted.has_value());
        // They go on until the sandbox ends.
        CHECK(run_python(f.sandbox, "print('still')").out == "still\n");
    }
    SECTION("of what has stopped") {
        f.run_until_halted();
        f.departure.close();
        f.run();
        CHECK(wait_event(f.sandbox).worker.id == family.parent);
    }
    CHECK(f.gone == 0);
    CHECK_FALSE(f.begin());
    require_ok(f.sandbox.destroy(kPatience));
}

TEST_CASE("without cgroups nothing departs") {
    if (::geteuid() == 0) {
        return;
    }
    Leaving f;
    CHECK_FALSE(f.begin());
    require_ok(f.sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
