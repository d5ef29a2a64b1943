// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/restart_budget.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <chrono>

using cellkeep::session::RestartBudget;
using namespace std::chrono_literals;

TEST_CASE(
    "a session may restart as often as the table says within its window", "[session][restart]") {
    RestartBudget budget(cellkeep::limits::kRestartsMax, cellkeep::limits::kRestartWindow);
    const RestartBudget::Time start(1000s);
    for (std::size_t i = 0; i < cellkeep::limits::kRestartsMax; ++i) {
        CHECK(budget.take(start));
    }
    CHECK_FALSE(budget.take(start));
    CHECK_FALSE(budget.take(start + cellkeep::limits::kRestartWindow));
    CHECK(budget.take(start + cellkeep::limits::kRestartWindow + 1ns));
}

TEST_CASE("deaths far apart never use the budget up", "[session][restart]") {
    RestartBudget budget(1, 10s);
    RestartBudget::Time now(0s);
    for (int i = 0; i < 100; ++i) {
        CHECK(budget.take(now));
        now += 11s;
    }
}

TEST_CASE(
    "a reset gives the whole budget back, and a budget of none gives nothing",
    "[session][restart]") {
    RestartBudget budget(1, 10s);
    CHECK(budget.take(RestartBudget::Time(0s)));
    CHECK_FALSE(budget.take(RestartBudget::Time(1s)));
    budget.reset();
    CHECK(budget.take(RestartBudget::Time(1s)));
    RestartBudget none(0, 10s);
    CHECK_FALSE(none.take(RestartBudget::Time(0s)));
}
