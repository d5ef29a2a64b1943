// SPDX-License-Identifier: Apache-2.0
//
// Where allocations lie once the gaps of the heap are filled.
#include "kernels/common/heap.hpp"

#include <catch2/catch.hpp>

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

using Block = std::unique_ptr<void, decltype(&std::free)>;

namespace {

Block allocate(std::size_t size) {
    return {std::malloc(size), &std::free};
}

std::uintptr_t address(const Block& block) {
    return reinterpret_cast<std::uintptr_t>(block.get());
}

/// Skipped under a sanitizer, whose allocator has an order of its own.
bool is_system_heap() {
    const Block some = allocate(24);
    return ::mallinfo2().arena != 0;
}

}  // namespace

TEST_CASE("after the gaps are filled, allocations lie behind all others", "[kernels][heap]") {
    if (!is_system_heap()) {
        return;
    }
    // Gaps of all sizes between blocks that stay.
    std::vector<Block> kept;
    std::vector<Block> gaps;
    for (std::size_t size = 24; size < 100'000; size += size / 8 + 8) {
        for (int i = 0; i < 20; ++i) {
            gaps.push_back(allocate(size));
            kept.push_back(allocate(24));
        }
    }
    const std::uintptr_t last = address(kept.back());
    gaps.clear();
    cellkeep::kernels::fill_heap_gaps();
    CHECK(::mallinfo2().fordblks == ::mallinfo2().keepcost);  // free is only what is at the end
    for (std::size_t size = 24; size < 60'000; size += size / 4 + 8) {
        kept.push_back(allocate(size));
        CAPTURE(size);
        CHECK(address(kept.back()) > last);
    }
}

TEST_CASE("what is freed afterwards is used again", "[kernels][heap]") {
    if (!is_system_heap()) {
        return;
    }
    cellkeep::kernels::fill_heap_gaps();
    Block block = allocate(5000);
    const std::uintptr_t place = address(block);
    const Block behind = allocate(24);
    block.reset();
    block = allocate(5000);
    CHECK(address(block) == place);
}
