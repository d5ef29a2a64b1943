// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/time.hpp"

#include <catch2/catch.hpp>

#include <chrono>

using cellkeep::to_iso8601;
using std::chrono::microseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

TEST_CASE("a time has six fraction digits and a Z, always", "[support][time]") {
    const system_clock::time_point epoch{};
    CHECK(to_iso8601(epoch) == "1970-01-01T00:00:00.000000Z");
    CHECK(to_iso8601(epoch + microseconds(5)) == "1970-01-01T00:00:00.000005Z");
    CHECK(to_iso8601(epoch + microseconds(999'999)) == "1970-01-01T00:00:00.999999Z");
    CHECK(
        to_iso8601(epoch + seconds(1'795'294'780) + microseconds(123)) ==
        "2026-11-21T20:59:40.000123Z");
    CHECK(to_iso8601(epoch + seconds(1'709'164'800)) == "2024-02-29T00:00:00.000000Z");
}

TEST_CASE("a time before 1970 counts its fraction upward", "[support][time]") {
    const system_clock::time_point epoch{};
    CHECK(to_iso8601(epoch - microseconds(1)) == "1969-12-31T23:59:59.999999Z");
}
