// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "tests/unit/kernel/supervisor_fixture.hpp"

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using protocol::Channel;
using test::answer;
using test::Calls;
using test::code_of_wait;
using test::is_killed;
using test::status_of;
using test::SupervisorFixture;

TEST_CASE("the cell of an ending process does not wait for the sweep", "[session][process]") {
    SupervisorFixture fixture(false, 1h, 0ms);
    fixture.launch_ready();
    fixture.running = fixture.process().sent[0];
    fixture.exit();
    fixture.until([&] { return !fixture.running.has_value(); });
    CHECK(fixture.take_calls() == Calls{"fail running: exited(3)", "fail waiting: exited(3)"});
    CHECK(fixture.supervisor.has_process());
    fixture.supervisor.on_swept();
    CHECK(
        fixture.take_calls() ==
        Calls{"+died", "lost: exited(3), informed, restarts", "+restart", "restarting", "started"});
}

TEST_CASE("the processes that a killed kernel left may not end", "[session][process]") {
    SupervisorFixture fixture(false, 1h, 0ms);
    fixture.launch_ready();
    fixture.supervisor.kill({Death::Kind::kWallTimeout, 0});
    fixture.supervisor.kill({Death::Kind::kRequested, 0});  // the first reason stays
    fixture.until([&] { return !fixture.supervisor.has_process(); });
    CHECK(
        fixture.take_calls() ==
        Calls{"+died", "lost: wall_timeout", "dead", "left dead: wall_timeout"});
    CHECK(fixture.sweeps == 1);
    fixture.supervisor.on_swept();  // too late: no process waits for it
    CHECK(fixture.take_calls().empty());
    fixture.supervisor.begin_restart();
    CHECK(
        fixture.take_calls() == Calls{"+died", "lost: requested, restarts", "+restart", "started"});
}

TEST_CASE("a restart during a sweep decides what follows", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    fixture.exit();
    const auto restarted = fixture.spawn(fixture.supervisor.restart());
    fixture.poll();
    CHECK(fixture.process().signals.empty());  // it had ended without a signal
    CHECK(fixture.take_calls() == Calls{"fail waiting: requested"});
    CHECK(fixture.starts.processes.size() == 1);
    fixture.supervisor.on_swept();
    // A restart that was asked for has no "restarting".
    CHECK(
        fixture.take_calls() == Calls{"+died", "lost: requested, restarts", "+restart", "started"});
    fixture.poll();
    CHECK_FALSE(restarted->has_value());
    fixture.process().answer_info();
    fixture.poll();
    REQUIRE(restarted->has_value());
    CHECK((*restarted)->has_value());
    CHECK(fixture.starts.processes.size() == 2);
}

TEST_CASE("a restart while everything is being swept starts one process", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    fixture.postpones = true;
    fixture.crash();
    CHECK(fixture.starts.processes.size() == 1);
    fixture.take_calls();
    const auto restarted = fixture.spawn(fixture.supervisor.restart());
    fixture.poll();
    CHECK(fixture.take_calls().empty());
    CHECK(fixture.supervisor.restarts() == 1);
    fixture.postpones = false;
    fixture.supervisor.launch_or_die();
    CHECK(fixture.starts.processes.size() == 2);
    fixture.process().answer_info();
    fixture.poll();
    REQUIRE(restarted->has_value());
    CHECK((*restarted)->has_value());
}

TEST_CASE("a restart of a live process kills it and answers what waits", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    const auto restarted = fixture.spawn(fixture.supervisor.restart());
    fixture.poll();
    CHECK(is_killed(fixture.process()));
    CHECK(fixture.take_calls() == Calls{"fail waiting: requested"});
    fixture.supervisor.begin_restart();  // once more: it is being killed already
    fixture.crash();
    CHECK(fixture.starts.processes.size() == 2);
    fixture.exit();  // the fresh one dies before it is ready
    fixture.supervisor.on_swept();
    fixture.poll();
    CHECK(code_of_wait(*restarted) == ErrorCode::kUnavailable);
}

TEST_CASE("a process that dies again and again is left dead", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    for (std::size_t i = 0; i < limits::kRestartsMax; ++i) {
        fixture.crash();
        fixture.process().answer_info();
    }
    CHECK(fixture.supervisor.restarts() == limits::kRestartsMax);
    fixture.take_calls();
    fixture.crash();
    CHECK(
        fixture.take_calls() == Calls{"+died", "lost: exited(3)", "dead", "left dead: exited(3)"});
    fixture.supervisor.begin_restart();  // earlier deaths no longer count
    fixture.process().answer_info();
    fixture.crash();
    CHECK(fixture.supervisor.restarts() == limits::kRestartsMax + 2);
}

TEST_CASE("no process follows where none may", "[session][process]") {
    SECTION("after a spare") {
        SupervisorFixture fixture(true);
        fixture.launch_ready();
        fixture.crash();
        CHECK(fixture.calls.back() == "left dead: exited(3)");
    }
    SECTION("after the sandbox") {
        SupervisorFixture fixture;
        fixture.launch_ready();
        fixture.supervisor.on_sandbox_died();
        CHECK(fixture.calls.back() == "left dead: sandbox_died");
    }
    SECTION("if it cannot be started") {
        SupervisorFixture fixture;
        fixture.launch_ready();
        fixture.starts.status = Error(ErrorCode::kUnavailable, "no");
        fixture.sweep = Error(ErrorCode::kUnavailable, "no");  // then nothing is waited for
        fixture.exit();
        CHECK(
            fixture.take_calls() == Calls{
                                        "+died",
                                        "lost: exited(3), restarts",
                                        "+restart",
                                        "restarting",
                                        "+died",
                                        "fail waiting: start_failed",
                                        "dead",
                                        "left dead: start_failed"});
    }
    SECTION("after the session") {
        SupervisorFixture fixture;
        fixture.launch_ready();
        fixture.supervisor.close();
        CHECK_FALSE(fixture.supervisor.takes_requests());
        const auto restarted = fixture.spawn(fixture.supervisor.restart());
        fixture.poll();
        fixture.calls.clear();
        fixture.supervisor.end({Death::Kind::kCulled, 0});
        CHECK(fixture.take_calls() == Calls{"+died", "lost: culled"});
        fixture.poll();
        CHECK(code_of_wait(*restarted) == ErrorCode::kCancelled);
        CHECK(fixture.starts.processes.size() == 1);
    }
}

TEST_CASE("a start that fails after it was begun leaves the kernel dead", "[session][process]") {
    SupervisorFixture fixture;
    REQUIRE(fixture.supervisor.launch().has_value());
    const auto ready = fixture.spawn(fixture.supervisor.wait_ready());
    fixture.poll();
    CHECK(fixture.supervisor.has_process());
    CHECK_FALSE(fixture.supervisor.takes_requests());
    const auto late = fixture.process().events.on_start_failed;
    late(Error(ErrorCode::kNotFound, "no such program"));
    CHECK_FALSE(fixture.supervisor.has_process());
    CHECK(fixture.process().gone);
    CHECK(
        fixture.take_calls() ==
        Calls{"started", "+died", "fail waiting: start_failed", "dead", "left dead: start_failed"});
    fixture.poll();
    CHECK(code_of_wait(*ready) == ErrorCode::kNotFound);
    CHECK(fixture.sweeps == 0);  // there is nothing to kill
    late(Error(ErrorCode::kNotFound, "no such program"));
    fixture.supervisor.begin_restart();
    CHECK(
        fixture.take_calls() == Calls{"+died", "lost: requested, restarts", "+restart", "started"});
    late(Error(ErrorCode::kNotFound, "no such program"));  // of an earlier process
    CHECK(fixture.take_calls().empty());
    fixture.process().answer_info();
    CHECK(fixture.supervisor.takes_requests());
}

TEST_CASE(
    "a restart of a process that is being started waits for its birth", "[session][process]") {
    SupervisorFixture fixture;
    REQUIRE(fixture.supervisor.launch().has_value());
    const auto restarted = fixture.spawn(fixture.supervisor.restart());
    fixture.poll();
    CHECK(is_killed(fixture.process()));
    CHECK(fixture.starts.processes.size() == 1);
    SECTION("which fails") {
        fixture.process().events.on_start_failed(Error(ErrorCode::kSystem, "fork"));
    }
    SECTION("after which it is killed") {
        fixture.crash();
    }
    CHECK(fixture.starts.processes.size() == 2);
    fixture.process().answer_info();
    fixture.poll();
    REQUIRE(restarted->has_value());
    CHECK((*restarted)->has_value());
}

}  // namespace
}  // namespace cellkeep::session
