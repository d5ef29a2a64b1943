// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_meter.hpp"

#include "protocol/limits.hpp"
#include "tests/support/start_time.hpp"

#include <catch2/catch.hpp>

using cellkeep::session::OutputMeter;
using cellkeep::session::test::kStart;
using namespace std::chrono_literals;
namespace limits = cellkeep::limits;

namespace {

OutputMeter begun() {
    OutputMeter meter;
    meter.begin(1000, kStart);
    return meter;
}

}  // namespace

TEST_CASE("the bound of bytes is met and passed by one byte", "[session][meter]") {
    auto meter = begun();
    CHECK_FALSE(meter.add(limits::kOutputCutBytes, kStart).has_value());
    CHECK(meter.add(1, kStart) == OutputMeter::Bound::kBytes);
    CHECK(meter.bytes() == limits::kOutputCutBytes + 1);
    CHECK(meter.messages() == 2);
}

TEST_CASE("the bound of messages is met and passed by one message", "[session][meter]") {
    auto meter = begun();
    for (std::uint64_t i = 0; i < limits::kOutputCutMessages; ++i) {
        REQUIRE_FALSE(meter.add(10, kStart).has_value());
    }
    CHECK(meter.add(10, kStart) == OutputMeter::Bound::kMessages);
}

TEST_CASE("a session with more text in its answers may say more", "[session][meter]") {
    CHECK(OutputMeter::burst_bytes(1) == limits::kOutputCutBytes);
    const std::uint64_t much = limits::kOutputCutBytes;
    CHECK(OutputMeter::burst_bytes(much) == limits::kOutputCutFactor * much);
    OutputMeter meter;
    meter.begin(much, kStart);
    CHECK_FALSE(meter.add(limits::kOutputCutFactor * much, kStart).has_value());
    CHECK(meter.add(1, kStart) == OutputMeter::Bound::kBytes);
}

TEST_CASE("a session that prints little at a time may print for ever", "[session][meter]") {
    auto meter = begun();
    auto now = kStart;
    for (int second = 0; second < 1000; ++second) {
        for (std::uint64_t i = 0; i < limits::kOutputMessagesPerSecond; ++i) {
            REQUIRE_FALSE(
                meter.add(limits::kOutputBytesPerSecond / limits::kOutputMessagesPerSecond, now)
                    .has_value());
        }
        now += 1s;
    }
    CHECK(meter.bytes() > 3 * limits::kOutputCutBytes);
}

TEST_CASE("silence refills the allowance up to its start and no further", "[session][meter]") {
    auto meter = begun();
    REQUIRE_FALSE(meter.add(limits::kOutputCutBytes, kStart).has_value());
    const auto later = kStart + std::chrono::hours(100'000);
    CHECK_FALSE(meter.add(limits::kOutputCutBytes, later).has_value());
    CHECK(meter.add(1, later) == OutputMeter::Bound::kBytes);
    CHECK_FALSE(meter.add(limits::kOutputBytesPerSecond, later + 1s).has_value());
    CHECK(meter.add(1, later + 1s) == OutputMeter::Bound::kBytes);
}

TEST_CASE("each run begins anew", "[session][meter]") {
    auto meter = begun();
    (void)meter.add(2 * limits::kOutputCutBytes, kStart);
    meter.begin(1000, kStart);
    CHECK(meter.bytes() == 0);
    CHECK(meter.messages() == 0);
    CHECK_FALSE(meter.add(limits::kOutputCutBytes, kStart).has_value());
}
