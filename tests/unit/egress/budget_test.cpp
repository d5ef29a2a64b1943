// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/budget.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::egress;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE(
    "kEgressRequestsPerMinuteMax requests pass in a minute, one more does not",
    "[egress][budget]") {
    Budget budget{ProxyLimits()};
    const Budget::Clock::time_point start{seconds(1000)};
    for (std::size_t i = 0; i < limits::kEgressRequestsPerMinuteMax; ++i) {
        REQUIRE(budget.take_request(start + milliseconds(i)));
    }
    CHECK_FALSE(budget.take_request(start + seconds(59)));
    // The first has left the window; exactly one place is free.
    CHECK(budget.take_request(start + seconds(60)));
    CHECK_FALSE(budget.take_request(start + seconds(60)));
    CHECK(budget.take_request(start + seconds(120)));
}

TEST_CASE(
    "kEgressBytesUpMax bytes go up and kEgressBytesDownMax down, not one more",
    "[egress][budget]") {
    Budget budget{ProxyLimits()};
    CHECK(budget.take_up(limits::kEgressBytesUpMax - 1));
    CHECK_FALSE(budget.take_up(2));
    CHECK(budget.up_left());
    CHECK(budget.take_up(1));
    CHECK_FALSE(budget.up_left());
    CHECK_FALSE(budget.take_up(1));
    CHECK(budget.take_down(limits::kEgressBytesDownMax));
    CHECK_FALSE(budget.take_down(1));
    CHECK_FALSE(budget.down_left());
    CHECK_FALSE(budget.take_down(UINT64_MAX));
    CHECK(budget.traffic().bytes_up == limits::kEgressBytesUpMax);
    CHECK(budget.traffic().bytes_down == limits::kEgressBytesDownMax);
}
