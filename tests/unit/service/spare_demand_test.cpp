// SPDX-License-Identifier: Apache-2.0
//
// How many spares of each kind are wanted after requests at certain times.
#include "kernel-manager/service/spare_demand.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

using cellkeep::session::kDemandHold;
using cellkeep::session::kDemandMemory;
using cellkeep::session::kDemandMoment;
using cellkeep::session::kLearnedKindsMax;
using cellkeep::session::SessionOptions;
using cellkeep::session::SpareDemand;
using namespace std::chrono_literals;

namespace {

using DemandTime = SpareDemand::TimePoint;
constexpr std::size_t kMost = 20;
const DemandTime kDemandStart{1h};

SessionOptions of(const std::string& language, std::uint64_t memory_mb = 512) {
    SessionOptions options;
    options.language = language;
    options.limits.memory_mb = memory_mb;
    return options;
}

/// "language*count", in the order of making.
std::vector<std::string> demand_texts(const SpareDemand& demand, DemandTime now) {
    std::vector<std::string> all;
    for (const SpareDemand::Kind& kind : demand.wanted(now)) {
        all.push_back(kind.options.language + "*" + std::to_string(kind.count));
    }
    return all;
}

struct Asked {
    std::chrono::milliseconds at;
    std::string language;
};

struct DemandRow {
    std::string name;
    std::vector<Asked> asked;
    std::chrono::milliseconds now;
    std::vector<std::string> wanted;  // python*2 is wanted always
};

}  // namespace

TEST_CASE("as many spares are wanted as were requested at once", "[session][prespawn]") {
    const DemandRow row = GENERATE(values<DemandRow>({
        {"no request", {}, 0ms, {"python*2"}},
        {"what is there always is enough", {{0ms, "python"}, {1ms, "python"}}, 1ms, {"python*2"}},
        {"three at once",
         {{0ms, "python"}, {1ms, "python"}, {2ms, "python"}},
         2ms,
         {"python*2", "python*3"}},
        {"a second is a second, not longer",
         {{0ms, "python"}, {500ms, "python"}, {1000ms, "python"}, {1500ms, "python"}},
         1500ms,
         {"python*2"}},
        {"nor does it begin with the clock's",
         {{900ms, "python"}, {1000ms, "python"}, {1100ms, "python"}, {1899ms, "python"}},
         2s,
         {"python*2", "python*4"}},
        {"the busiest second counts, not the last",
         {{0ms, "bash"}, {1ms, "bash"}, {2ms, "bash"}, {30s, "bash"}},
         30s,
         {"python*2", "bash*3"}},
        {"for ten minutes", {{0ms, "bash"}, {1ms, "bash"}}, 10min, {"python*2", "bash*2"}},
        {"and no longer", {{0ms, "bash"}, {1ms, "bash"}}, 10min + 1ms, {"python*2"}},
        {"and then what came after it",
         {{0ms, "bash"}, {1ms, "bash"}, {5min, "bash"}},
         10min + 1ms,
         {"python*2", "bash*1"}},
        {"until that is over, too",
         {{0ms, "bash"}, {1ms, "bash"}, {5min, "bash"}},
         15min,
         {"python*2"}},
        {"who asked last is served first",
         {{0ms, "bash"}, {1ms, "sql"}},
         1ms,
         {"python*2", "sql*1", "bash*1"}},
    }));
    CAPTURE(row.name);
    SpareDemand demand({{of("python"), 2}}, kMost);
    for (const Asked& asked : row.asked) {
        demand.note(of(asked.language), kDemandStart + asked.at);
    }
    CHECK(demand_texts(demand, kDemandStart + row.now) == row.wanted);
}

TEST_CASE("demand grows to a bound, what is wanted always comes first", "[session][prespawn]") {
    SpareDemand demand({{of("python"), 2}}, 5);
    for (int i = 0; i < 100; ++i) {
        demand.note(of("python"), kDemandStart);
        demand.note(of("bash"), kDemandStart);
    }
    // Three places are left for both kinds: the kind of the last request gets them.
    CHECK(demand_texts(demand, kDemandStart) == std::vector<std::string>{"python*2", "python*5"});
    demand.note(of("bash"), kDemandStart + 1ms);
    CHECK(
        demand_texts(demand, kDemandStart + 1ms) == std::vector<std::string>{"python*2", "bash*3"});
    CHECK(demand.wanted(of("bash"), kDemandStart) == 3);
    CHECK(demand.wanted(of("python"), kDemandStart) == 2);
    CHECK(demand.wanted(of("sql"), kDemandStart) == 0);
    CHECK(demand.wanted_always(of("python")) == 2);
    CHECK(demand.wanted_always(of("bash")) == 0);
    SECTION("what is wanted always is wanted beyond it") {
        SpareDemand small({{of("python"), 4}}, 1);
        small.note(of("bash"), kDemandStart);
        CHECK(demand_texts(small, kDemandStart) == std::vector<std::string>{"python*4"});
    }
    SECTION("nothing is learned where nothing may be") {
        SpareDemand none({{of("python"), 1}}, 0);
        none.note(of("bash"), kDemandStart);
        CHECK(demand_texts(none, kDemandStart) == std::vector<std::string>{"python*1"});
        CHECK_FALSE(none.declines_at(kDemandStart).has_value());
    }
}

TEST_CASE("another sandbox is another kind", "[session][prespawn]") {
    SpareDemand demand({{of("python"), 1}}, kMost);
    demand.note(of("python", 300), kDemandStart);
    const auto wanted = demand.wanted(kDemandStart);
    REQUIRE(wanted.size() == 2);
    CHECK(wanted[1].options.limits.memory_mb == 300);
    CHECK(wanted[1].count == 1);
}

TEST_CASE("a request that no spare could serve does not count", "[session][prespawn]") {
    SpareDemand demand({}, kMost);
    SessionOptions asked = of("python");
    SECTION("a variable that is read at start") {
        asked.env = {{"PYTHONHASHSEED", "0"}};
    }
    SECTION("an input of the operator's") {
        asked.files.emplace_back();
        asked.files.back().from = "data.csv";
    }
    SECTION("a network") {
        asked.network.allow.emplace_back();
    }
    demand.note(asked, kDemandStart);
    CHECK(demand.wanted(kDemandStart).empty());
}

TEST_CASE("at most kLearnedKindsMax kinds are learned, and none in a loop", "[session][prespawn]") {
    SpareDemand demand({{of("python"), 1}}, 100);
    for (std::size_t i = 0; i < kLearnedKindsMax; ++i) {
        demand.note(of("kind" + std::to_string(i)), kDemandStart + std::chrono::milliseconds(i));
    }
    demand.note(of("python"), kDemandStart);  // not one of them
    CHECK(demand.wanted(kDemandStart + 1s).size() == 1 + kLearnedKindsMax);
    demand.note(of("ninth"), kDemandStart + kDemandHold - 1ms);
    CHECK(demand.wanted(of("ninth"), kDemandStart + kDemandHold) == 0);
    demand.note(of("ninth"), kDemandStart + kDemandHold);
    CHECK(demand.wanted(of("ninth"), kDemandStart + kDemandHold) == 1);
    CHECK(demand.wanted(of("kind0"), kDemandStart + kDemandHold) == 0);
    CHECK(demand.wanted(of("kind1"), kDemandStart + kDemandHold) == 1);
    CHECK(demand.wanted(kDemandStart + kDemandHold).size() == 1 + kLearnedKindsMax);
}

TEST_CASE("the demand says when it will decline", "[session][prespawn]") {
    SpareDemand demand({{of("python"), 1}}, kMost);
    CHECK_FALSE(demand.declines_at(kDemandStart).has_value());
    demand.note(of("bash"), kDemandStart);
    demand.note(of("bash"), kDemandStart + 1ms);
    demand.note(of("bash"), kDemandStart + 1min);
    CHECK(demand.declines_at(kDemandStart + 1min) == kDemandStart + 1ms + kDemandMemory);
    CHECK(
        demand.declines_at(kDemandStart + 1ms + kDemandMemory) ==
        kDemandStart + 1min + kDemandMemory);
    CHECK_FALSE(demand.declines_at(kDemandStart + 1min + kDemandMemory).has_value());
    STATIC_REQUIRE(kDemandMoment < kDemandMemory);
}
