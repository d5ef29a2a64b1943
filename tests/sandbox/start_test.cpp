// SPDX-License-Identifier: Apache-2.0
//
// Starts whose pid 1 does not answer yet, or never does.
#include "tests/sandbox/fixture.hpp"
#include "tests/support/held_process.hpp"
#include "tests/support/process_tree.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <signal.h>

#include <string>
#include <utility>

namespace cellkeep::test {

using sandbox::Sandbox;
using sandbox::SandboxEvent;
using sandbox::WorkerSpec;

namespace {

WorkerSpec quiet_program(const std::string& path) {
    WorkerSpec spec;
    spec.argv = {path};
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    return spec;
}

void require_no_answer(Sandbox& sandbox) {
    const auto taken = sandbox.take_start();
    REQUIRE(taken.has_value());
    CHECK_FALSE(taken.value().has_value());
}

}  // namespace

TEST_CASE("a start is asked for without a wait, and its answer comes later") {
    auto sandbox = make_sandbox();
    StoppedProcess pid1(only_child());
    const auto asked = sandbox.begin_start(quiet_program("/usr/bin/true"));
    REQUIRE(asked.has_value());
    require_no_answer(sandbox);
    // One at a time.
    const auto second = sandbox.begin_start(quiet_program("/usr/bin/true"));
    REQUIRE(second.has_error());
    CHECK(second.error().code() == ErrorCode::kConflict);
    CHECK(sandbox.kill_workers(kPatience).error().code() == ErrorCode::kConflict);
    pid1.resume();
    REQUIRE(wait_readable(sandbox.answer_fd()));
    auto worker = sandbox.take_start();
    REQUIRE(worker.has_value());
    REQUIRE(worker.value().has_value());
    CHECK(worker.value()->id == asked.value());
    CHECK(wait_event(sandbox).worker.id == asked.value());
    require_no_answer(sandbox);
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a start that fails is over, and the next one may come") {
    auto sandbox = make_sandbox();
    REQUIRE(sandbox.begin_start(quiet_program("/usr/bin/no-such-program")).has_value());
    REQUIRE(wait_readable(sandbox.answer_fd()));
    const auto failed = sandbox.take_start();
    REQUIRE(failed.has_error());
    CHECK_THAT(failed.error().message(), Catch::Contains("no-such-program"));
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a program that is started beside others is there when its start is answered") {
    auto sandbox = make_sandbox();
    const auto neighbour = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    for (int i = 0; i < 20; ++i) {
        const auto worker = start_inside(sandbox, {"/usr/bin/tail", "-f", "/dev/null"});
        CHECK(name_of(pid_of(worker.pidfd.get())) == "tail");
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a program that does not start beside others is told as an exit") {
    auto sandbox = make_sandbox();
    const auto neighbour = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    const auto worker = start_inside(sandbox, {"/usr/bin/no-such-program"});
    const auto event = wait_event(sandbox);
    CHECK(event.worker.id == worker.id);
    CHECK_FALSE(event.worker.failure.empty());
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a pid 1 that is given up takes its sandbox with it") {
    auto sandbox = make_sandbox();
    const auto running = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    StoppedProcess pid1(only_child());
    REQUIRE(sandbox.begin_start(quiet_program("/usr/bin/true")).has_value());
    require_no_answer(sandbox);
    sandbox.give_up();
    CHECK(wait_readable(running.pidfd.get()));
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kSandboxDied);
    CHECK(sandbox.unexpected_end() == "pid 1 did not answer a start and was killed");
    const auto next = sandbox.begin_start(quiet_program("/usr/bin/true"));
    REQUIRE(next.has_error());
    CHECK(next.error().code() == ErrorCode::kUnavailable);
    require_no_answer(sandbox);
    require_ok(sandbox.destroy(kPatience));
    CHECK_FALSE(has_children());
}

TEST_CASE("a sandbox that ends during a start leaves nothing") {
    auto sandbox = make_sandbox();
    {
        StoppedProcess pid1(only_child());
        REQUIRE(sandbox.begin_start(quiet_program("/usr/bin/sleep")).has_value());
        SECTION("by its owner") {
            require_ok(sandbox.destroy(kPatience));
            CHECK(sandbox.take_start().has_error());
        }
        SECTION("by another thread's work") {
            auto rest = sandbox.release();
            require_ok(rest.destroy(kPatience));
            CHECK(sandbox.take_start().has_error());
        }
        SECTION("by the death of pid 1") {
            REQUIRE(::kill(only_child(), SIGKILL) == 0);
            REQUIRE(wait_readable(sandbox.answer_fd()));
            CHECK(sandbox.take_start().has_error());
            CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kSandboxDied);
            require_ok(sandbox.destroy(kPatience));
        }
    }
    CHECK_FALSE(has_children());
}

}  // namespace cellkeep::test
