// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/range.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http {
namespace {

TEST_CASE("one byte range selects its part", "[http][range]") {
    const auto [header, offset, length] =
        GENERATE(table<std::string, std::uint64_t, std::uint64_t>({
            {"bytes=0-0", 0, 1},
            {"bytes=0-9", 0, 10},
            {"bytes=2-4", 2, 3},
            {"bytes=9-9", 9, 1},
            {"bytes=3-", 3, 7},
            {"bytes=0-99", 0, 10},
            {"bytes=-3", 7, 3},
            {"bytes=-99", 0, 10},
            {"Bytes=1-1", 1, 1},
        }));
    CAPTURE(header);
    const RangeAnswer answer = select_range(header, 10);
    CHECK(answer.outcome == RangeOutcome::kPart);
    CHECK(answer.range.offset == offset);
    CHECK(answer.range.length == length);
}

TEST_CASE("what is not one plain range is ignored: the whole file", "[http][range]") {
    const std::string header = GENERATE(
        as<std::string>(),
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=1",
        "bytes=4-2",
        "bytes=0-1,3-4",
        "items=0-1",
        "bytes=--1",
        "bytes=1--2",
        "bytes= 1-2",
        "bytes=+1-2",
        "bytes=0x1-2",
        "bytes=99999999999999999999999-",
        "bytes=1-99999999999999999999999");
    CAPTURE(header);
    const RangeAnswer answer = select_range(header, 10);
    CHECK(answer.outcome == RangeOutcome::kWhole);
    CHECK(answer.range.length == 10);
}

TEST_CASE("a range outside the file cannot be satisfied", "[http][range]") {
    CHECK(select_range("bytes=10-", 10).outcome == RangeOutcome::kNotSatisfiable);
    CHECK(select_range("bytes=10-12", 10).outcome == RangeOutcome::kNotSatisfiable);
    CHECK(select_range("bytes=-0", 10).outcome == RangeOutcome::kNotSatisfiable);
    CHECK(select_range("bytes=0-0", 0).outcome == RangeOutcome::kNotSatisfiable);
    CHECK(select_range("bytes=-5", 0).outcome == RangeOutcome::kNotSatisfiable);
}

}  // namespace
}  // namespace cellkeep::http
