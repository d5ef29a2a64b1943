// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/link/frame_memory.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using cellkeep::limits::kFrameBytesMax;
using cellkeep::limits::kLinkFramesBytesMax;
using cellkeep::session::FrameMemory;

namespace {

struct MemoryHarness {
    boost::asio::io_context io;
    FrameMemory& memory = boost::asio::use_service<FrameMemory>(io);
    std::string granted;  // the names of claims, in the order in which they were granted later

    std::unique_ptr<FrameMemory::Claim> claim(char name) {
        return std::make_unique<FrameMemory::Claim>(memory, [this, name] { granted += name; });
    }
};

}  // namespace

TEST_CASE("limits::kLinkFramesBytesMax: claims beyond it wait for those before them", "[limits]") {
    MemoryHarness harness;
    const auto first = harness.claim('1');
    const auto second = harness.claim('2');
    const auto third = harness.claim('3');
    std::vector<std::unique_ptr<FrameMemory::Claim>> others;
    for (std::size_t i = 0; i + 1 < kLinkFramesBytesMax / kFrameBytesMax; ++i) {
        others.push_back(harness.claim('x'));
        REQUIRE(others.back()->take(kFrameBytesMax));
    }
    REQUIRE(first->take(kFrameBytesMax));
    CHECK(harness.memory.used() == kLinkFramesBytesMax);
    CHECK_FALSE(second->take(kFrameBytesMax));
    CHECK_FALSE(third->take(1));
    CHECK((second->waits() && third->waits()));
    CHECK(harness.memory.waiting() == 2);
    others.back().reset();
    CHECK(harness.granted == "2");
    CHECK(third->waits());
    first->release();
    CHECK(harness.granted == "23");
    CHECK(third->held() == 1);
    CHECK(harness.memory.waiting() == 0);
}

TEST_CASE("a small claim does not pass a large one that waits") {
    MemoryHarness harness;
    std::vector<std::unique_ptr<FrameMemory::Claim>> others;
    for (std::size_t i = 0; i < kLinkFramesBytesMax / kFrameBytesMax; ++i) {
        others.push_back(harness.claim('x'));
        REQUIRE(others.back()->take(kFrameBytesMax - 1));
    }
    const auto large = harness.claim('l');
    const auto small = harness.claim('s');
    CHECK_FALSE(large->take(kFrameBytesMax));
    CHECK_FALSE(small->take(1));  // would fit
    large->release();
    CHECK(harness.granted == "s");
}

TEST_CASE("a claim that ends while it waits leaves the queue, one that held gives back") {
    MemoryHarness harness;
    std::vector<std::unique_ptr<FrameMemory::Claim>> others;
    for (std::size_t i = 0; i < kLinkFramesBytesMax / kFrameBytesMax; ++i) {
        others.push_back(harness.claim('x'));
        REQUIRE(others.back()->take(kFrameBytesMax));
    }
    auto gone = harness.claim('g');
    const auto next = harness.claim('n');
    REQUIRE_FALSE(gone->take(1));
    REQUIRE_FALSE(next->take(2));
    gone.reset();
    CHECK(harness.memory.waiting() == 1);
    others.clear();
    CHECK(harness.granted == "n");
    CHECK(harness.memory.used() == 2);
    next->release();
    next->release();
    CHECK(harness.memory.used() == 0);
    CHECK(next->take(3));
}
