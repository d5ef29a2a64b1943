// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/usage_meter.hpp"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;

struct MeterFixture {
    SessionAccount account{0};
    SessionLimits limits;
    sandbox::Usage usage;
    std::optional<ErrorCode> fails;
    std::optional<ErrorCode> group_fails;
    std::vector<std::string> lines;
    UsageMeter meter{
        {.counters = [this]() -> Result<sandbox::Usage> {
             if (fails) {
                 return Error(*fails, "counters");
             }
             return usage;
         },
         .cpu_counter = [this]() -> Result<sandbox::Usage> {
             if (fails) {
                 return Error(*fails, "cpu counter");
             }
             sandbox::Usage cpu;
             cpu.cpu_time = usage.cpu_time;
             cpu.cpu_lost = usage.cpu_lost;
             return cpu;
         },
         .cpu_time = [this](sandbox::WorkerGroup group) -> Result<std::chrono::microseconds> {
             if (group_fails) {
                 return Error(*group_fails, "cpu time");
             }
             return std::chrono::microseconds(1000 * group);
         }},
        account,
        limits,
        [this](const std::string& line) { lines.push_back(line); }};
};

TEST_CASE("counters are the sandbox's", "[session][usage]") {
    MeterFixture fixture;
    fixture.usage.cpu_time = 3s;
    fixture.usage.oom_kills = 2;
    CHECK(fixture.meter.counters().cpu_time == 3s);
    CHECK(fixture.meter.counters().oom_kills == 2);
    CHECK(fixture.meter.cpu_time(2) == std::chrono::microseconds(2000));
    CHECK(fixture.lines.empty());
}

TEST_CASE("a run begins with what was read a moment ago, or now", "[session][usage]") {
    MeterFixture fixture;
    const auto read_at = UsageMeter::Time::clock::now();
    fixture.usage.cpu_time = 3s;
    fixture.usage.oom_kills = 2;
    (void)fixture.meter.counters(read_at);
    fixture.usage.cpu_time = 4s;
    fixture.usage.oom_kills = 5;
    SECTION("both are fresh") {
        CHECK(fixture.meter.recent_counters(read_at + kCountersFresh).cpu_time == 3s);
        CHECK(fixture.meter.recent_counters(read_at + kCountersFresh).oom_kills == 2);
    }
    SECTION("the CPU time was read alone since") {
        CHECK(fixture.meter.cpu_time(read_at + 1ms) == 4s);
        const auto usage = fixture.meter.recent_counters(read_at + kCountersFresh);
        CHECK(usage.cpu_time == 4s);
        CHECK(usage.oom_kills == 2);
    }
    SECTION("they are older") {
        const auto usage = fixture.meter.recent_counters(read_at + kCountersFresh + 1us);
        CHECK(usage.cpu_time == 4s);
        CHECK(usage.oom_kills == 5);
    }
    SECTION("the CPU time alone is fresh") {
        (void)fixture.meter.cpu_time(read_at + kCountersFresh);
        CHECK(fixture.meter.recent_counters(read_at + kCountersFresh + 1us).oom_kills == 5);
    }
}

TEST_CASE("a run begins with a reading where there was none before", "[session][usage]") {
    MeterFixture fixture;
    fixture.usage.cpu_time = 3s;
    CHECK(fixture.meter.cpu_time() == 3s);
    fixture.usage.oom_kills = 1;
    CHECK(fixture.meter.recent_counters().oom_kills == 1);
}

TEST_CASE("without a cgroup all counters are zero", "[session][usage]") {
    MeterFixture fixture;
    fixture.usage.cpu_time = 3s;
    fixture.fails = ErrorCode::kUnavailable;
    CHECK(fixture.meter.counters().cpu_time == 0s);
    CHECK(fixture.meter.cpu_time() == 0s);
    CHECK(fixture.meter.recent_counters().cpu_time == 0s);
    fixture.group_fails = ErrorCode::kUnavailable;
    CHECK_FALSE(fixture.meter.cpu_time(1).has_value());
    CHECK(fixture.lines.empty());
}

TEST_CASE("CPU time that cannot be read goes on, and the log says so once", "[session][usage]") {
    MeterFixture fixture;
    fixture.usage.cpu_time = 3s;
    (void)fixture.meter.counters();
    fixture.usage.cpu_lost = true;
    fixture.usage.cpu_time = 0s;
    fixture.account.begin_run(std::chrono::steady_clock::now());
    (void)fixture.meter.counters();
    CHECK(fixture.meter.counters().cpu_time >= 3s);
    REQUIRE(fixture.lines.size() == 1);
    CHECK(fixture.lines[0].find("cannot be read") != std::string::npos);
    fixture.usage.cpu_lost = false;
    fixture.usage.cpu_time = 4s;
    CHECK(fixture.meter.counters().cpu_time >= 4s);
    CHECK(fixture.lines.size() == 2);
}

TEST_CASE("a group's counter that is lost goes on by an estimate", "[session][usage]") {
    MeterFixture fixture;
    CHECK(fixture.meter.cpu_time(3) == 3ms);
    fixture.group_fails = ErrorCode::kSystem;
    const auto lost = fixture.meter.cpu_time(3);
    REQUIRE(lost.has_value());
    CHECK(*lost >= 3ms);
    CHECK(fixture.meter.cpu_time(4).has_value());  // each group has a clock of its own
}

}  // namespace
}  // namespace cellkeep::session
