// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/limit_monitor.hpp"

#include "protocol/limits.hpp"
#include "tests/support/start_time.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <string>

using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::sandbox::Usage;
using cellkeep::session::test::kStart;
using namespace cellkeep::session;
using nlohmann::json;
using namespace std::chrono_literals;
namespace limits = cellkeep::limits;

namespace {

Message failure(int number) {
    return Message::make(
        Channel::kShell,
        make_header("execute_reply", "k", "u"),
        json::object(),
        {{"status", "error"}, {"ename", "OSError"}, {"evalue", "x"}},
        {{"cellkeep", {{"error", {{"kind", "runtime"}, {"errno", number}}}}}});
}

}  // namespace

TEST_CASE("events before a run are not counted for the run", "[session][monitor]") {
    SessionAccount account(10);
    LimitMonitor monitor(account);
    Usage usage;
    usage.oom_kills = 3;
    usage.process_refusals = 7;
    monitor.on_denied({"ptrace", 1});
    monitor.begin(usage, SessionLimits{}, kStart);
    monitor.on_reply(failure(EPERM));
    CHECK_FALSE(monitor.end(usage, std::nullopt, SessionLimits{}, kStart).has_value());
}

TEST_CASE("events during a run are counted for it", "[session][monitor]") {
    SessionAccount account(10);
    LimitMonitor monitor(account);
    Usage usage;
    monitor.begin(usage, SessionLimits{}, kStart);
    monitor.on_denied({"ptrace", 1});
    monitor.on_reply(failure(EPERM));
    CHECK(
        monitor.end(usage, std::nullopt, SessionLimits{}, kStart)->reason ==
        LimitReason::kForbidden);
    monitor.begin(usage, SessionLimits{}, kStart);
    usage.process_refusals = 1;
    monitor.on_reply(failure(EAGAIN));
    CHECK(
        monitor.end(usage, std::nullopt, SessionLimits{}, kStart)->reason ==
        LimitReason::kTooManyProcesses);
}

TEST_CASE("refusals that the code handled are not reported", "[session][monitor]") {
    SessionAccount account(10);
    LimitMonitor monitor(account);
    Usage usage;
    monitor.begin(usage, SessionLimits{}, kStart);
    monitor.on_denied({"ptrace", 1});
    usage.process_refusals = 1;
    CHECK_FALSE(monitor.end(usage, std::nullopt, SessionLimits{}, kStart).has_value());
}

TEST_CASE("the first limit wins", "[session][monitor]") {
    const SessionLimits limits;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    monitor.begin({}, limits, kStart);
    (void)monitor.wall_time(limits, 100ms);
    (void)monitor.cpu_time(limits);
    monitor.on_cut(Cut::kInterrupt);  // no limit: the next one counts
    monitor.on_cut(Cut::kWallTimeout);
    monitor.on_cut(Cut::kOutputLimit);
    monitor.on_reply(failure(ENOSPC));
    const auto hit = monitor.end({}, Death{Death::Kind::kOom, 0}, limits, kStart);
    REQUIRE(hit.has_value());
    CHECK(hit->reason == LimitReason::kWallTimeout);
    CHECK_THAT(hit->message, Catch::Contains("0.1 s"));
}

TEST_CASE("a flood is reported once for each run and once between two", "[session][monitor]") {
    const SessionLimits limits;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    account.hand_out(0us);
    monitor.listen(limits, kStart);
    CHECK_FALSE(monitor.passes_output(limits::kOutputCutBytes, kStart));
    CHECK(monitor.passes_output(1, kStart));
    CHECK_FALSE(monitor.passes_output(1, kStart));
    monitor.begin({}, limits, kStart);
    CHECK_FALSE(monitor.passes_output(limits::kOutputCutBytes, kStart));
    CHECK(monitor.passes_output(1, kStart));
    CHECK_FALSE(monitor.passes_output(1, kStart));
    monitor.on_cut(Cut::kOutputLimit);
    CHECK_THAT(monitor.describe_cut(limits), Catch::Contains("bytes of output"));
    CHECK(monitor.end({}, std::nullopt, limits, kStart)->reason == LimitReason::kOutputLimit);
    CHECK_FALSE(monitor.passes_output(limits::kOutputCutBytes, kStart));
    CHECK(monitor.passes_output(1, kStart));
}

TEST_CASE(
    "a run may send kOutputCutMessages at once and is cut for one more", "[session][monitor]") {
    const SessionLimits limits;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    account.hand_out(0us);
    monitor.listen(limits, kStart);
    monitor.begin({}, limits, kStart);
    for (std::uint64_t i = 0; i < limits::kOutputCutMessages; ++i) {
        REQUIRE_FALSE(monitor.passes_output(1, kStart));
    }
    CHECK(monitor.passes_output(1, kStart));
    monitor.on_cut(Cut::kOutputLimit);
    const auto hit = monitor.end({}, std::nullopt, limits, kStart);
    REQUIRE(hit.has_value());
    CHECK(hit->reason == LimitReason::kOutputLimit);
    CHECK_THAT(
        hit->message,
        Catch::Contains("in " + std::to_string(limits::kOutputCutMessages + 1) + " messages") &&
            Catch::Contains("limit " + std::to_string(limits::kOutputCutMessages)));
}

TEST_CASE("a run is cut at the end of its session's output budget", "[session][monitor]") {
    SessionLimits limits;
    limits.total_output_bytes = 100;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    monitor.begin({}, limits, kStart);
    CHECK_FALSE(monitor.passes_output(100, kStart));
    CHECK(monitor.passes_output(1, kStart));
    monitor.on_cut(Cut::kOutputLimit);
    const auto hit = monitor.end({}, std::nullopt, limits, kStart);
    CHECK_THAT(hit->message, Catch::Contains("total_output_bytes"));
    CHECK(account.find_exhausted(limits)->budget == "total_output_bytes");
    // Output between two runs is no reason to kill the interpreter for a budget.
    CHECK_FALSE(monitor.passes_output(1000, kStart));
    CHECK(account.used().output_bytes == 101);
}

TEST_CASE("what is said before the first run costs nothing of a budget", "[session][monitor]") {
    SessionLimits limits;
    limits.total_output_bytes = 1;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    account.hand_out(0us);
    monitor.listen(limits, kStart);
    CHECK_FALSE(monitor.passes_output(2000, kStart));  // the description of itself
    CHECK_FALSE(account.find_exhausted(limits).has_value());
    monitor.begin({}, limits, kStart);
    CHECK_FALSE(monitor.passes_output(1, kStart));
    CHECK(monitor.passes_output(1, kStart));
}

TEST_CASE(
    "time is counted: of runs the wall's, of the session the processor's", "[session][monitor]") {
    SessionLimits limits;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    Usage usage;
    usage.cpu_time = 300ms;  // of the interpreter's start
    account.hand_out(usage.cpu_time);
    monitor.listen(limits, kStart);
    monitor.begin(usage, limits, kStart);
    usage.cpu_time = 350ms;
    (void)monitor.end(usage, std::nullopt, limits, kStart + 80ms);
    usage.cpu_time = 360ms;  // of a thread that goes on
    monitor.begin(usage, limits, kStart + 1s);
    CHECK(account.used().wall == 80ms);
    CHECK(account.used().cpu == 60ms);
    limits.total_cpu = 100ms;
    CHECK(monitor.cpu_time(limits).time == 40ms);
    CHECK(monitor.cpu_time(limits).from_budget);
    limits.total_wall = 100ms;
    CHECK(monitor.wall_time(limits, 30s).time == 20ms);
    monitor.on_cut(Cut::kWallTimeout);
    CHECK_THAT(monitor.describe_cut(limits), Catch::Contains("total_wall_ms"));
}

TEST_CASE(
    "what other languages use of the session's processor time leaves less", "[session][monitor]") {
    SessionLimits limits;
    limits.total_cpu = 100ms;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    LimitMonitor other(account);
    Usage usage;
    monitor.begin(usage, limits, kStart);
    // The first run has used all of this time alone: it still counts for that run only.
    usage.cpu_time = 50ms;
    other.begin(usage, limits, kStart);
    CHECK(monitor.cpu_time(limits, 50ms).time == 100ms);
    CHECK(other.cpu_time(limits, 0ms).time == 50ms);
    // Then the other run uses 30 ms, and the first 20 ms more.
    usage.cpu_time = 100ms;
    account.see(usage.cpu_time);
    CHECK(monitor.cpu_time(limits, 70ms).time == 70ms);
    CHECK(other.cpu_time(limits, 30ms).time == 30ms);
    CHECK(other.cpu_time(limits, 30ms).from_budget);
}

TEST_CASE("runs at the same time take from the budget of time together", "[session][monitor]") {
    SessionLimits limits;
    limits.total_wall = 1000ms;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    LimitMonitor other(account);
    monitor.begin({}, limits, kStart);
    CHECK(monitor.wall_time(limits, 30s).time == 1000ms);
    other.begin({}, limits, kStart + 200ms);
    CHECK(account.runs() == 2);
    CHECK(other.wall_time(limits, 30s).time == 800ms);
    // After 400 ms and 200 ms, 400 ms are left for both.
    CHECK(monitor.wall_time(limits, 30s, kStart + 400ms).time == 800ms);
    CHECK(other.wall_time(limits, 30s, kStart + 400ms).time == 600ms);
    CHECK(other.wall_time(limits, 300ms, kStart + 400ms).time == 300ms);
    // After 600 ms and 400 ms nothing is left: each run's limit is what it has used.
    CHECK(monitor.wall_time(limits, 30s, kStart + 600ms).time == 600ms);
    CHECK(other.wall_time(limits, 30s, kStart + 600ms).time == 400ms);
    CHECK(other.wall_time(limits, 30s, kStart + 600ms).from_budget);
    (void)other.end({}, std::nullopt, limits, kStart + 600ms);
    CHECK(monitor.wall_time(limits, 30s, kStart + 600ms).time == 600ms);
    (void)monitor.end({}, std::nullopt, limits, kStart + 600ms);
    CHECK(account.used().wall == 1000ms);
    CHECK(account.runs() == 0);
}

TEST_CASE(
    "the budget of output is met and passed by one byte, in every monitor", "[session][monitor]") {
    SessionLimits limits;
    limits.total_output_bytes = 100;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    LimitMonitor other(account);
    monitor.begin({}, limits, kStart);
    other.begin({}, limits, kStart);
    CHECK_FALSE(monitor.passes_output(60, kStart));
    CHECK_FALSE(other.passes_output(40, kStart));
    CHECK(monitor.passes_output(1, kStart));
    CHECK(other.passes_output(1, kStart));
    CHECK_FALSE(other.passes_output(1, kStart));  // reported once
    monitor.on_cut(Cut::kOutputLimit);
    CHECK_THAT(monitor.describe_cut(limits), Catch::Contains("total_output_bytes"));
}

TEST_CASE("the text about a deadline is as it always was", "[session][monitor]") {
    const SessionLimits limits;
    SessionAccount account(10);
    LimitMonitor monitor(account);
    monitor.begin({}, limits, kStart);
    (void)monitor.wall_time(limits, 2s);
    monitor.on_cut(Cut::kWallTimeout);
    CHECK(
        monitor.describe_cut(limits) ==
        "The cell reached its time limit of 2 s and is being interrupted.");
}

TEST_CASE("budgets stop all clients, the breaker only agents", "[session][monitor]") {
    SessionLimits limits;
    SessionAccount account(1);
    LimitMonitor monitor(account);
    CHECK_FALSE(account.refuse_agent(limits, kStart).has_value());
    account.accept_agent();
    account.end_agent(CircuitVote::kFailure, kStart);
    CHECK(account.refuse_agent(limits, kStart)->kind == LimitRefusal::Kind::kCircuitOpen);
    CHECK(account.circuit(kStart).state == CircuitState::kOpen);
    CHECK_FALSE(account.find_exhausted(limits).has_value());
    account.accept_client();
    limits.executions = 2;
    CHECK(account.refuse_agent(limits, kStart)->kind == LimitRefusal::Kind::kBudget);
    CHECK(account.find_exhausted(limits)->used == 2);
    limits.executions.reset();
    limits.total_artifact_bytes = 10;
    account.add_artifacts(10);
    CHECK(account.find_exhausted(limits)->budget == "total_artifact_bytes");
}

TEST_CASE(
    "refused calls are remembered by name, at most kDenialsRememberedMax", "[session][monitor]") {
    SessionAccount account(10);
    LimitMonitor monitor(account);
    monitor.begin({}, SessionLimits{}, kStart);
    for (std::size_t i = 0; i < limits::kDenialsRememberedMax + 1; ++i) {
        monitor.on_denied({"call" + std::to_string(i) + ".", 1});
        monitor.on_denied({"call" + std::to_string(i) + ".", 1});
    }
    monitor.on_reply(failure(EPERM));
    const auto hit = monitor.end({}, std::nullopt, SessionLimits{}, kStart);
    REQUIRE(hit.has_value());
    const std::string last = std::to_string(limits::kDenialsRememberedMax - 1);
    const std::string beyond = std::to_string(limits::kDenialsRememberedMax);
    CHECK_THAT(hit->message, Catch::Contains("call" + last + "."));
    CHECK_THAT(hit->message, !Catch::Contains("call" + beyond + "."));
}
