// SPDX-License-Identifier: Apache-2.0
//
// A process whose successor does not wait for its end, but for its last instruction.
#include "tests/unit/kernel/supervisor_fixture.hpp"

namespace cellkeep::session {
namespace {

using test::Calls;
using test::Done;
using test::is_killed;
using test::status_of;
using test::SupervisorFixture;

const Calls kReplaced{"+died", "lost: requested, restarts", "+restart", "started"};

Done replace(SupervisorFixture& fixture) {
    fixture.halts = true;
    fixture.launch_ready();
    auto done = fixture.spawn(fixture.supervisor.replace());
    fixture.poll();
    return done;
}

TEST_CASE("a process is replaced when it has stopped", "[session][process]") {
    SupervisorFixture fixture;
    const Done done = replace(fixture);
    REQUIRE(fixture.halted.size() == 1);
    CHECK(fixture.take_calls() == Calls{"fail waiting: requested"});
    CHECK_FALSE(fixture.supervisor.takes_requests());
    CHECK(fixture.process().signals.empty());
    const auto left = fixture.starts.processes[0];
    left->piped = "last words";
    const auto exit = fixture.starts.exit(0);
    fixture.halted[0](true);
    CHECK(
        fixture.take_calls() ==
        Calls{"last words", "+died", "lost: requested, restarts", "+restart", "started"});
    CHECK(left->gone);
    CHECK(fixture.sweeps == 0);
    // The exit of the old process comes later, and the new one is not touched by it.
    CHECK_FALSE(fixture.supervisor.is_of(exit.id));
    left->events.on_text(OutputStream::kStdout, "too late");
    fixture.halted[0](true);
    CHECK(fixture.take_calls().empty());
    fixture.process().answer_info();
    fixture.poll();
    REQUIRE(done->has_value());
    CHECK((*done)->has_value());
    CHECK(fixture.starts.processes.size() == 2);
    CHECK(fixture.supervisor.restarts() == 1);
}

TEST_CASE("a process that does not stop is killed and waited for", "[session][process]") {
    SupervisorFixture fixture;
    const Done done = replace(fixture);
    fixture.take_calls();
    SECTION("when that is known") {
        fixture.halted[0](false);
        CHECK(is_killed(fixture.process()));
        fixture.exit();
    }
    SECTION("when it has ended meanwhile") {
        fixture.exit();
        CHECK(fixture.sweeps == 0);
        fixture.supervisor.on_swept();  // of another sweep
        CHECK(fixture.starts.processes.size() == 1);
        fixture.halted[0](false);
        CHECK(fixture.process().signals.empty());
    }
    CHECK(fixture.take_calls().empty());
    CHECK(fixture.sweeps == 1);
    fixture.supervisor.on_swept();
    CHECK(fixture.take_calls() == kReplaced);
    CHECK_FALSE(done->has_value());
}

TEST_CASE("what ends while it is stopped needs no sweep", "[session][process]") {
    SupervisorFixture fixture;
    const Done done = replace(fixture);
    fixture.take_calls();
    fixture.exit();
    fixture.halted[0](true);
    CHECK(fixture.take_calls() == kReplaced);
    CHECK(fixture.sweeps == 0);
    CHECK_FALSE(done->has_value());
}

TEST_CASE("nothing starts before a process has stopped", "[session][process]") {
    SupervisorFixture fixture;
    const Done done = replace(fixture);
    const auto restarted = fixture.spawn(fixture.supervisor.restart());
    fixture.poll();
    fixture.supervisor.kill({Death::Kind::kWallTimeout, 0});
    CHECK(fixture.process().signals.empty());
    CHECK(fixture.starts.processes.size() == 1);
    fixture.take_calls();
    fixture.halted[0](true);
    CHECK(fixture.take_calls() == kReplaced);
    fixture.process().answer_info();
    fixture.poll();
    CHECK(done->has_value());
    CHECK(restarted->has_value());
    CHECK(fixture.starts.processes.size() == 2);
}

TEST_CASE("a session that ends does not wait until its process has stopped", "[session][process]") {
    SupervisorFixture fixture;
    const Done done = replace(fixture);
    SECTION("by itself") {
        fixture.supervisor.close();
        fixture.supervisor.end({Death::Kind::kRequested, 0});
    }
    SECTION("with its sandbox") {
        fixture.starts.status = Error(ErrorCode::kUnavailable, "gone");
        fixture.supervisor.on_sandbox_died();
    }
    fixture.poll();
    CHECK(done->has_value());
    fixture.take_calls();
    fixture.halted[0](true);
    fixture.halted[0](false);
    CHECK(fixture.take_calls().empty());
    CHECK(fixture.starts.processes.size() == 1);
}

TEST_CASE("nothing follows what has ended with its session", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    fixture.halts = GENERATE(true, false);
    fixture.supervisor.close();
    const bool ended = GENERATE(true, false);  // or it is about to
    if (ended) {
        fixture.supervisor.end({Death::Kind::kRequested, 0});
    }
    const Done replaced = fixture.spawn(fixture.supervisor.replace());
    const Done restarted = fixture.spawn(fixture.supervisor.restart());
    fixture.poll();
    REQUIRE(replaced->has_value());
    CHECK((*replaced)->error().code() == ErrorCode::kCancelled);
    REQUIRE(restarted->has_value());
    CHECK((*restarted)->error().code() == ErrorCode::kCancelled);
    CHECK(fixture.halted.empty());
    CHECK(fixture.starts.processes.size() == 1);
}

TEST_CASE("what cannot be stopped is restarted", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    SECTION("because the sandbox cannot") {}
    SECTION("because something runs") {
        fixture.halts = true;
        fixture.running = fixture.process().sent[0];
    }
    const auto done = fixture.spawn(fixture.supervisor.replace());
    fixture.poll();
    CHECK(fixture.halted.empty());
    CHECK(is_killed(fixture.process()));
    fixture.crash();
    CHECK(fixture.starts.processes.size() == 2);
    fixture.process().answer_info();
    fixture.poll();
    CHECK(done->has_value());
}

}  // namespace
}  // namespace cellkeep::session
