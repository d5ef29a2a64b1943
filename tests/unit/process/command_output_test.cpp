// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/command_output.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::process {
namespace {

/// Everything behind a place, and what was missed on the way.
std::string read_from(const CommandOutput& output, std::uint64_t place, std::uint64_t& missed) {
    std::string text;
    missed = 0;
    for (auto next = output.after(place); !next.text.empty(); next = output.after(next.end)) {
        text += next.text;
        missed += next.missed;
    }
    return text;
}

TEST_CASE("a reader goes on at the byte where it stopped", "[process][output]") {
    CommandOutput output;
    CHECK(output.after(0).text.empty());
    output.append(Stream::kStdout, "one");
    output.append(Stream::kStdout, "two");
    output.append(Stream::kStderr, "bad");
    output.append(Stream::kStdout, "");
    auto next = output.after(0);
    CHECK(next.text == "onetwo");
    CHECK(next.end == 6);
    CHECK(next.stream == Stream::kStdout);
    next = output.after(next.end);
    CHECK(next.text == "bad");
    CHECK(next.stream == Stream::kStderr);
    CHECK(output.after(next.end).text.empty());
    CHECK(output.after(4).text == "wo");
    CHECK(output.after(4).missed == 0);
    CHECK(output.after(5).text == "o");
    CHECK(output.total() == 9);
    CHECK(output.first_kept() == 0);
    // A place that has not been reached.
    CHECK(output.after(10).text.empty());
    CHECK(output.after(UINT64_MAX).missed == 0);
}

TEST_CASE("the oldest output goes, and a reader learns how much", "[process][output]") {
    CommandOutput output;
    const std::string piece(kOutputPieceBytesMax, 'x');
    std::uint64_t written = 0;
    std::uint64_t missed = 0;
    while (output.first_kept() == 0) {
        output.append(Stream::kStdout, piece);
        written += piece.size();
        CHECK(output.bytes() <= kOutputBytesMax);
    }
    CHECK(output.total() == written);
    CHECK(output.first_kept() == piece.size());
    const std::string rest = read_from(output, 0, missed);
    CHECK(missed == piece.size());
    CHECK(rest.size() + missed == written);
    CHECK(read_from(output, 10, missed).size() + missed == written - 10);
    CHECK(missed == piece.size() - 10);
    // More at once than is kept.
    output.append(Stream::kStderr, std::string(2 * kOutputBytesMax, 'y'));
    CHECK(output.bytes() <= kOutputBytesMax);
    CHECK(read_from(output, written, missed).size() + missed == 2 * kOutputBytesMax);
    CHECK(missed > kOutputBytesMax - 1);
}

TEST_CASE("output has pieces of a bounded size, and none for each byte", "[process][output]") {
    CommandOutput output;
    for (std::size_t i = 0; i <= kOutputPieceBytesMax; ++i) {
        output.append(Stream::kStdout, "x");
    }
    CHECK(output.after(0).end == kOutputPieceBytesMax);
    CHECK(output.after(kOutputPieceBytesMax).text == "x");
    output.append(Stream::kStderr, std::string(kOutputPieceBytesMax + 1, 'y'));
    CHECK(output.after(kOutputPieceBytesMax + 1).text.size() == kOutputPieceBytesMax);
    // Streams that take turns cost a piece each time: they count as what they cost.
    CommandOutput turns(4096);
    for (int i = 0; i < 10'000; ++i) {
        turns.append(i % 2 == 0 ? Stream::kStdout : Stream::kStderr, "z");
        REQUIRE(turns.bytes() <= 4096);
    }
    CHECK(turns.total() == 10'000);
    CHECK(turns.first_kept() > 9'000);
}

TEST_CASE("what lies behind a place is counted in bytes of memory", "[process]") {
    CommandOutput output;
    CHECK(output.bytes_after(0) == 0);
    output.append(Stream::kStdout, "one");
    output.append(Stream::kStderr, "two");
    output.append(Stream::kStdout, "three");
    CHECK(output.bytes_after(0) == output.bytes());
    CHECK(output.bytes_after(2) == output.bytes());  // within the first piece
    CHECK(output.bytes_after(3) < output.bytes());
    CHECK(output.bytes_after(6) < output.bytes_after(3));
    CHECK(output.bytes_after(6) > 0);
    CHECK(output.bytes_after(11) == 0);
    CHECK(output.bytes_after(99) == 0);
    const std::size_t last = output.bytes_after(6);
    output.append(Stream::kStdout, std::string(1000, 'x'));  // grows in place
    CHECK(output.bytes_after(6) >= last + 900);
    CHECK(output.bytes_after(0) == output.bytes());
}

}  // namespace
}  // namespace cellkeep::process
