// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"

#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>

#include <chrono>

using cellkeep::session::ExecutionRequest;
using cellkeep::session::ExecutionResult;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::SessionOptions;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;
using namespace std::chrono_literals;

TEST_CASE(
    "an endless loop ends at its deadline and its session goes on with its state", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    fixture.execute(*session, "kept = 7");
    ExecutionRequest request;
    request.code = "while True: pass";
    request.timeout = 300ms;
    const auto result = fixture.execute(*session, request);
    CHECK(result.status == ExecutionStatus::kTimeout);
    CHECK(result.error->kind == "wall_timeout");
    CHECK(result.state_kept);
    CHECK(result.metrics.wall < session->info().limits.wall);  // the request's own deadline
    CHECK(result_of(fixture.execute(*session, "kept"))["text/plain"] == "7");
}

TEST_CASE(
    "code that defies the interrupt is killed within the grace, and the session goes on",
    "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    ExecutionRequest request;
    request.code =
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "while True: pass";
    request.timeout = 300ms;
    const auto result = fixture.execute(*session, request);
    CHECK(result.status == ExecutionStatus::kTimeout);
    CHECK(result.error->kind == "wall_timeout");
    CHECK_FALSE(result.state_kept);
    CHECK(result.metrics.wall >= 300ms + cellkeep::limits::kInterruptGrace);
    CHECK(result.metrics.wall < session->info().limits.wall);
    CHECK(result_of(fixture.execute(*session, "1 + 1"))["text/plain"] == "2");
    CHECK(session->info().restarts == 1);
}

TEST_CASE("CPU time has a limit of its own", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.limits.cpu = 300ms;
    const auto session = fixture.open(options);
    const auto result = fixture.execute(*session, "while True: pass");
    CHECK(result.status == ExecutionStatus::kTimeout);
    CHECK(result.error->kind == "cpu_timeout");
    const auto waiting = fixture.execute(*session, "import time; time.sleep(0.5); 'slept'");
    CHECK(waiting.status == ExecutionStatus::kOk);
}

TEST_CASE("a timeout above the session's limit is refused", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    ExecutionRequest request;
    request.code = "1";
    request.timeout = 30'001ms;
    CHECK(fixture.run(session->execute(request)).has_error());
    request.timeout = 30'000ms;
    CHECK(fixture.run(session->execute(request)).has_value());
}

TEST_CASE("an interrupt stops the running code and keeps the state", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    cellkeep::test::RecordingClient watcher;
    session->subscribe(&watcher);
    ExecutionRequest request;
    request.code = "kept = 1\nprint('running', flush=True)\nwhile True: pass";
    std::optional<cellkeep::Result<ExecutionResult>> result;
    fixture.spawn(session->execute(request), result);
    fixture.run_until([&] {
        return !watcher.output.empty() &&
               watcher.output.back().message.header().msg_type == "stream";
    });
    REQUIRE(session->interrupt().has_value());
    fixture.run_until([&] { return result.has_value(); });
    CHECK(result->value().status == ExecutionStatus::kInterrupted);
    CHECK(result->value().error->name == "KeyboardInterrupt");
    CHECK(result_of(fixture.execute(*session, "kept"))["text/plain"] == "1");
    session->unsubscribe(&watcher);
}

TEST_CASE("an interrupt does not disturb an idle kernel", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    for (int i = 0; i < 20; ++i) {
        REQUIRE(session->interrupt().has_value());
    }
    CHECK(result_of(fixture.execute(*session, "1 + 1"))["text/plain"] == "2");
}

TEST_CASE(
    "a deadline or an interrupt that comes before the code has begun is not lost", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    fixture.execute(*session, "kept = 3");
    ExecutionRequest request;
    request.code = "while True: pass";
    SECTION("deadline") {
        request.timeout = 1ms;
        for (int i = 0; i < 9; ++i) {  // One more would open the circuit breaker.
            const auto result = fixture.execute(*session, request);
            REQUIRE(result.status == ExecutionStatus::kTimeout);
            REQUIRE(result.state_kept);
        }
    }
    SECTION("interrupt") {
        std::optional<cellkeep::Result<ExecutionResult>> result;
        fixture.spawn(session->execute(request), result);
        fixture.run_until([&] { return session->info().executions == 2; });
        REQUIRE(session->interrupt().has_value());
        fixture.run_until([&] { return result.has_value(); });
        CHECK(result->value().status == ExecutionStatus::kInterrupted);
    }
    CHECK(result_of(fixture.execute(*session, "kept"))["text/plain"] == "3");
}
