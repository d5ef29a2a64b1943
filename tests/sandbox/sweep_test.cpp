// SPDX-License-Identifier: Apache-2.0
//
// Killing everything in a sandbox but its pid 1, without waiting for those that take long to die.
#include "tests/sandbox/fixture.hpp"
#include "tests/support/held_process.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::test {

using sandbox::Sandbox;
using sandbox::SandboxEvent;
using sandbox::WorkerSpec;

namespace {

Result<sandbox::Worker> try_start(Sandbox& sandbox) {
    WorkerSpec spec;
    spec.argv = {"/usr/bin/true"};
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    return sandbox.start(std::move(spec));
}

}  // namespace

TEST_CASE("the end of a sweep comes after the exits of all workers, and the sandbox goes on") {
    auto sandbox = make_sandbox();
    for (int i = 0; i < 3; ++i) {
        (void)start_inside(
            sandbox, {"/usr/bin/sh", "-c", "sleep 1000 & setsid sleep 1000 & exec sleep 1000"});
    }
    require_ok(sandbox.begin_sweep());
    for (int i = 0; i < 3; ++i) {
        const auto event = wait_event(sandbox);
        CHECK(event.kind == SandboxEvent::Kind::kWorkerExited);
        CHECK(event.worker.signaled);
    }
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kSwept);
    CHECK(
        run_python(sandbox, "import os; print([p for p in os.listdir('/proc') if p.isdigit()])")
            .out.find("'1'") ==
        std::string::npos);  // pid 1 is hidden, and no other process is there
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a sweep without workers is over at once, as often as it is asked for") {
    auto sandbox = make_sandbox();
    for (int i = 0; i < 3; ++i) {
        require_ok(sandbox.begin_sweep());
        CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kSwept);
    }
    require_ok(sandbox.destroy(kPatience));
    const auto refused = sandbox.begin_sweep();
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kConflict);
}

TEST_CASE("while one of the killed has not ended, nothing waits and nothing is started") {
    auto sandbox = make_sandbox();
    const auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    auto held = HeldProcess::hold(pid_of(worker.pidfd.get()));
    REQUIRE(held.has_value());
    require_ok(sandbox.begin_sweep());
    const auto refused = try_start(sandbox);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kUnavailable);
    CHECK(refused.error().message().find("not all ended") != std::string::npos);
    CHECK_FALSE(sandbox.next_event().value().has_value());
    // A caller that waits learns that its time was not enough.
    const auto waited = sandbox.kill_workers(std::chrono::milliseconds(1));
    REQUIRE(waited.has_error());
    CHECK(waited.error().code() == ErrorCode::kTimeout);
    held.value().release();
    CHECK(wait_event(sandbox).worker.id == worker.id);
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kSwept);
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a sandbox with a process that has not ended is destroyed by a later call") {
    auto sandbox = make_sandbox();
    const auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    auto held = HeldProcess::hold(pid_of(worker.pidfd.get()));
    REQUIRE(held.has_value());
    const auto later = sandbox.destroy(std::chrono::milliseconds(0));
    REQUIRE(later.has_error());
    CHECK(later.error().code() == ErrorCode::kTimeout);
    held.value().release();
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
