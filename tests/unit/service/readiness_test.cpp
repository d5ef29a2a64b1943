// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/readiness.hpp"

#include <catch2/catch.hpp>

#include <vector>

using cellkeep::session::Readiness;
using namespace std::chrono_literals;

TEST_CASE("a server is ready once its zygotes and its spares are settled", "[service][ready]") {
    const Readiness::TimePoint made{};
    bool zygotes = false;
    std::vector<std::chrono::milliseconds> announced;
    Readiness readiness(
        made,
        [&] { return zygotes; },
        [&](std::chrono::milliseconds after) { announced.push_back(after); });
    CHECK_FALSE(readiness.is_ready());
    SECTION("zygotes first") {
        readiness.begin();
        zygotes = true;
        readiness.review(made + 5ms);
        CHECK_FALSE(readiness.is_ready());
        readiness.note_spares_settled(made + 7ms);
    }
    SECTION("spares first") {
        readiness.begin();
        readiness.note_spares_settled(made + 5ms);
        CHECK_FALSE(readiness.is_ready());
        zygotes = true;
        readiness.review(made + 7ms);
    }
    SECTION("not before the zygotes have begun") {
        zygotes = true;
        readiness.note_spares_settled(made + 5ms);
        CHECK_FALSE(readiness.is_ready());
        CHECK(announced.empty());
        readiness.begin();
        readiness.review(made + 7ms);
    }
    CHECK(readiness.is_ready());
    CHECK(announced == std::vector{7ms});
    readiness.note_spares_settled(made + 9ms);
    readiness.review(made + 9ms);
    CHECK(announced == std::vector{7ms});  // once
}

TEST_CASE("a server without a log is ready all the same", "[service][ready]") {
    Readiness readiness(
        {}, [] { return true; }, nullptr);
    readiness.begin();
    readiness.note_spares_settled({});
    CHECK(readiness.is_ready());
}
