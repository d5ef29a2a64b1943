// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/call_rate.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>

namespace cellkeep::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a session calls so often, and then waits for its turn", "[tools]") {
    CallRate rate;
    CallRate::Time now{seconds(100)};
    const milliseconds at_once{0};
    const milliseconds turn = milliseconds(1'000) / kSessionCallsPerSecond;
    for (std::size_t i = 0; i < kSessionCallsBurst; ++i) {
        CHECK(rate.admit("a", now) == at_once);
    }
    CHECK(rate.admit("a", now) == turn);
    CHECK(rate.admit("b", now) == at_once);  // each has its own
    // Who waits for each answer has the next turn when the last is over.
    for (int i = 0; i < 1'000; ++i) {
        now += turn;
        const auto wait = rate.admit("a", now);
        REQUIRE(wait);
        CHECK(*wait >= turn);
        CHECK(*wait <= turn + milliseconds(1));
    }
    now += seconds(60);
    CHECK(rate.admit("a", now) == at_once);
}

TEST_CASE("kSessionCallsWaitingMax calls of a session wait and no more", "[tools]") {
    CallRate rate;
    CallRate::Time now{seconds(100)};
    for (std::size_t i = 0; i < kSessionCallsBurst + kSessionCallsWaitingMax; ++i) {
        CHECK(rate.admit("a", now));
    }
    CHECK_FALSE(rate.admit("a", now));
    CHECK_FALSE(rate.admit("a", now));  // it has not been counted
    CHECK(rate.admit("b", now));
    now += milliseconds(999 / kSessionCallsPerSecond);
    CHECK_FALSE(rate.admit("a", now));
    now += milliseconds(1'001) / kSessionCallsPerSecond;
    CHECK(rate.admit("a", now));
    CHECK_FALSE(rate.admit("a", now));
}

TEST_CASE("sessions that no longer call are forgotten", "[tools]") {
    CallRate rate;
    CallRate::Time now{seconds(100)};
    for (int i = 0; i < 1'000; ++i) {
        CHECK(rate.admit(std::to_string(i), now));
    }
    CHECK(rate.size() == 1'000);
    now += seconds(60);
    CHECK(rate.admit("last", now));
    CHECK(rate.size() == 1);
}

}  // namespace
}  // namespace cellkeep::tools
