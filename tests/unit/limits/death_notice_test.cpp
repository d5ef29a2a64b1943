// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/death_notice.hpp"

#include <catch2/catch.hpp>

using cellkeep::session::Aftermath;
using cellkeep::session::Death;
using cellkeep::session::describe;
using cellkeep::session::describe_cpu_deadline;
using cellkeep::session::describe_duration;
using cellkeep::session::describe_wall_deadline;
using cellkeep::session::is_news;
using cellkeep::session::kCulledForAge;
using cellkeep::session::kServerShutdown;
using cellkeep::session::SessionLimits;
using namespace std::chrono_literals;

TEST_CASE("the notice of a death names the limit and what is left", "[session][notice]") {
    SessionLimits limits;
    limits.memory_mb = 2048;
    CHECK(
        describe({Death::Kind::kOom, 0}, limits, Aftermath::kRestarted) ==
        "The interpreter ran out of memory (limit 2048 MB). It was restarted; its variables are "
        "gone, files are kept.");
    CHECK_THAT(
        describe({Death::Kind::kSignal, 11}, limits, Aftermath::kRestored),
        Catch::Matchers::EndsWith(" It goes on from its newest checkpoint; files are kept."));
    CHECK_THAT(
        describe({Death::Kind::kSignal, 11}, limits, Aftermath::kLeftDead),
        Catch::Contains("segmentation fault") && Catch::Contains("until the session is restarted"));
    CHECK_THAT(
        describe({Death::Kind::kWallTimeout, 0}, limits, Aftermath::kRestarted),
        Catch::Contains("time limit of 30 s"));
    CHECK_THAT(
        describe({Death::Kind::kCpuTimeout, 0}, limits, Aftermath::kRestarted),
        Catch::Contains("CPU-time limit of 30 s"));
    CHECK_THAT(
        describe({Death::Kind::kCulled, 0}, limits, Aftermath::kEnded),
        Catch::Contains("No client used the session for 30 min") &&
            Catch::Contains("files are gone"));
    CHECK_THAT(
        describe({Death::Kind::kCulled, kCulledForAge}, limits, Aftermath::kEnded),
        Catch::Contains("greatest age of 1 d"));
    CHECK_THAT(
        describe({Death::Kind::kRequested, kServerShutdown}, limits, Aftermath::kEnded),
        Catch::Contains("The server is shutting down"));
}

TEST_CASE("a death that a client asked for has no notice", "[session][notice]") {
    CHECK_FALSE(is_news({Death::Kind::kRequested, 0}));
    CHECK(is_news({Death::Kind::kRequested, kServerShutdown}));
    for (const auto kind :
         {Death::Kind::kExited,
          Death::Kind::kSignal,
          Death::Kind::kOom,
          Death::Kind::kWallTimeout,
          Death::Kind::kCpuTimeout,
          Death::Kind::kCulled,
          Death::Kind::kStartFailed,
          Death::Kind::kSandboxDied,
          Death::Kind::kLinkBroken}) {
        CHECK(is_news({kind, 0}));
    }
}

TEST_CASE("durations are shown in the units in which people set them", "[session][notice]") {
    CHECK(describe_duration(0ms) == "0 s");
    CHECK(describe_duration(30s) == "30 s");
    CHECK(describe_duration(1500ms) == "1.5 s");
    CHECK(describe_duration(1005ms) == "1.005 s");
    CHECK(describe_duration(60s) == "1 min");
    CHECK(describe_duration(90min) == "1 h 30 min");
    CHECK(describe_duration(24h + 1s) == "1 d 1 s");
    CHECK_THAT(describe_wall_deadline(250ms), Catch::Contains("time limit of 0.25 s"));
    CHECK_THAT(describe_cpu_deadline(2min), Catch::Contains("CPU-time limit of 2 min"));
}
