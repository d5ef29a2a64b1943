// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/budgets.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <string>

using cellkeep::session::Budgets;
using cellkeep::session::SessionLimits;
using namespace std::chrono_literals;

TEST_CASE("each budget refuses when it is used up and not one before", "[session][budgets]") {
    struct Row {
        std::string name;
        std::function<void(SessionLimits&)> set;
        std::function<void(Budgets&)> almost;
        std::function<void(Budgets&)> last;
        std::uint64_t limit;
    };
    const Row rows[] = {
        {"executions",
         [](auto& limits) { limits.executions = 2; },
         [](auto& budgets) { budgets.add_execution(); },
         [](auto& budgets) { budgets.add_execution(); },
         2},
        {"total_wall_ms",
         [](auto& limits) { limits.total_wall = 10ms; },
         [](auto& budgets) { budgets.add_wall(9999us); },
         [](auto& budgets) { budgets.add_wall(1us); },
         10},
        {"total_cpu_ms",
         [](auto& limits) { limits.total_cpu = 10ms; },
         [](auto& budgets) { budgets.set_cpu(9999us); },
         [](auto& budgets) { budgets.set_cpu(10ms); },
         10},
        {"total_output_bytes",
         [](auto& limits) { limits.total_output_bytes = 100; },
         [](auto& budgets) { budgets.add_output(99); },
         [](auto& budgets) { budgets.add_output(1); },
         100},
        {"total_artifact_bytes",
         [](auto& limits) { limits.total_artifact_bytes = 100; },
         [](auto& budgets) { budgets.add_artifacts(99); },
         [](auto& budgets) { budgets.add_artifacts(1); },
         100},
    };
    for (const Row& row : rows) {
        INFO(row.name);
        SessionLimits limits;
        Budgets budgets;
        row.almost(budgets);
        row.last(budgets);
        CHECK_FALSE(budgets.find_exhausted(limits).has_value());  // without one nothing is refused
        row.set(limits);
        Budgets counted;
        CHECK_FALSE(counted.find_exhausted(limits).has_value());
        row.almost(counted);
        CHECK_FALSE(counted.find_exhausted(limits).has_value());
        row.last(counted);
        const auto refusal = counted.find_exhausted(limits);
        REQUIRE(refusal.has_value());
        CHECK(refusal->budget == row.name);
        CHECK(refusal->used == row.limit);
        CHECK(refusal->limit == row.limit);
        CHECK_FALSE(refusal->retry_after.has_value());
        CHECK_THAT(refusal->message, Catch::Contains(row.name));
        CHECK_FALSE(refusal->hint.empty());
    }
}

TEST_CASE("a run gets its own limit or what its budget leaves", "[session][budgets]") {
    SessionLimits limits;
    limits.cpu = 500ms;
    Budgets budgets;
    CHECK(budgets.allow_wall(limits, 300ms).time == 300ms);
    CHECK_FALSE(budgets.allow_wall(limits, 300ms).from_budget);
    limits.total_wall = 1000ms;
    limits.total_cpu = 500ms;
    CHECK_FALSE(budgets.allow_wall(limits, 1000ms).from_budget);
    CHECK_FALSE(budgets.allow_cpu(limits).from_budget);
    budgets.add_wall(900ms);
    budgets.set_cpu(499'500us);
    CHECK(budgets.allow_wall(limits, 1000ms).time == 100ms);
    CHECK(budgets.allow_wall(limits, 1000ms).from_budget);
    CHECK(budgets.allow_wall(limits, 50ms).time == 50ms);
    CHECK(budgets.allow_cpu(limits).time == 1ms);  // never none: what runs must be cut by its timer
    CHECK(budgets.allow_cpu(limits).from_budget);
}

TEST_CASE("CPU time of a session never goes back", "[session][budgets]") {
    Budgets budgets;
    budgets.set_cpu(5ms);
    budgets.set_cpu(3ms);
    CHECK(budgets.used().cpu == 5ms);
}
