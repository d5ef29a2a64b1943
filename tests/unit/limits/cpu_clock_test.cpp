// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/cpu_clock.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::session {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr CpuClock::Time cpu_moment(seconds after) {
    return CpuClock::Time() + after;
}

}  // namespace

TEST_CASE("CPU time is the counter's as long as that can be read", "[session][limits]") {
    CpuClock clock;
    CHECK(clock.see(milliseconds(5), 2.0, cpu_moment(seconds(0))) == milliseconds(5));
    CHECK(clock.see(milliseconds(7), 2.0, cpu_moment(seconds(60))) == milliseconds(7));
    CHECK_FALSE(clock.estimates());
    CHECK(clock.see(milliseconds(6), 2.0, cpu_moment(seconds(61))) == milliseconds(7));
}

TEST_CASE("without its counter CPU time goes on at full speed", "[session][limits]") {
    CpuClock clock;
    (void)clock.see(milliseconds(500), 2.0, cpu_moment(seconds(0)));
    CHECK(clock.see(std::nullopt, 2.0, cpu_moment(seconds(1))) == milliseconds(2500));
    CHECK(clock.estimates());
    CHECK(clock.see(std::nullopt, 0.5, cpu_moment(seconds(3))) == milliseconds(3500));
    // Nothing ran: an idle session does not use its budget up.
    CHECK(clock.see(std::nullopt, 0.0, cpu_moment(seconds(3600))) == milliseconds(3500));
}

TEST_CASE("a counter that was never readable counts from the first look", "[session][limits]") {
    CpuClock clock;
    CHECK(clock.see(std::nullopt, 4.0, cpu_moment(seconds(50))) == microseconds(0));
    CHECK(clock.see(std::nullopt, 4.0, cpu_moment(seconds(51))) == seconds(4));
}

TEST_CASE("a counter that comes back goes on from the estimate", "[session][limits]") {
    CpuClock clock;
    (void)clock.see(seconds(1), 1.0, cpu_moment(seconds(0)));
    (void)clock.see(std::nullopt, 1.0, cpu_moment(seconds(10)));  // 11 s, at most
    CHECK(clock.see(seconds(2), 1.0, cpu_moment(seconds(11))) == seconds(11));
    CHECK_FALSE(clock.estimates());
    CHECK(clock.see(seconds(3), 1.0, cpu_moment(seconds(12))) == seconds(12));
    SECTION("and from the truth where that is more") {
        (void)clock.see(std::nullopt, 0.0, cpu_moment(seconds(13)));
        CHECK(clock.see(seconds(8), 1.0, cpu_moment(seconds(14))) == seconds(17));
    }
}

}  // namespace cellkeep::session
