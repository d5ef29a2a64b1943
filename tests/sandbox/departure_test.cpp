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
        io, {.halt = [this] { return sandbox.halt(0); }, .gone = [this] { ++gone; }}, [] {
            return std::make_shared<int>();
        }};
    std::optional<bool> halted;

    bool begin() {
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

/// Fails the test case if one of them lives.
void check_empty(Sandbox& sandbox) {
    auto leaf = sandbox.halt(0);
    REQUIRE(leaf.has_value());
    CHECK(leaf.value().is_empty());
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
    // The cgroup is thawed: a process that comes later runs.
    CHECK(run_python(f.sandbox, "print('new')").out == "new\n");
    require_ok(f.sandbox.destroy());
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
    require_ok(f.sandbox.destroy());
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
    require_ok(f.sandbox.destroy());
}

TEST_CASE("without cgroups nothing departs") {
    if (::geteuid() == 0) {
        return;
    }
    Leaving f;
    CHECK_FALSE(f.begin());
    require_ok(f.sandbox.destroy());
}

}  // namespace cellkeep::test
