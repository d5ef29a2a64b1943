// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/call_rate.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>

namespace cellkeep::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a session calls so often and no more", "[tools]") {
    CallRate rate;
    CallRate::Time now{seconds(100)};
    for (std::size_t i = 0; i < kSessionCallsBurst; ++i) {
        CHECK(rate.admit("a", now));
    }
    CHECK_FALSE(rate.admit("a", now));
    CHECK(rate.admit("b", now));  // each has its own
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
