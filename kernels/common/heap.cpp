// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/heap.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace cellkeep::kernels {

namespace {

/// Larger blocks are mappings of their own, or come from the end.
constexpr std::size_t kLargest = 128UL * 1024;
constexpr std::size_t kCoarseStep = 1024;
/// Chunks are multiples of 16 bytes, of which 8 are the allocator's.
constexpr std::size_t kFineStep = 16;
constexpr std::size_t kHeader = 8;

/// Where the heap's last, growing piece begins: everything below it is a gap.
std::uintptr_t end_of_gaps() {
    return reinterpret_cast<std::uintptr_t>(::sbrk(0)) - ::mallinfo2().keepcost;
}

/// A compiler may leave out an allocation that nobody uses; of this one it does not know that.
void* take(std::size_t size) {
    void* block = std::malloc(size);
    asm volatile("" : "+r"(block) : : "memory");
    return block;
}

void take_all(std::size_t size, std::uintptr_t end) {
    while (true) {
        void* const block = take(size);
        if (block == nullptr || reinterpret_cast<std::uintptr_t>(block) >= end) {
            std::free(block);
            return;
        }
        // Never given back.
    }
}

}  // namespace

void fill_heap_gaps() {
    // Joins neighbours, also those that the allocator keeps apart for quick reuse.
    (void)::malloc_trim(0);  // Ignored: whether it gave anything back to the system.
    const std::uintptr_t end = end_of_gaps();
    for (std::size_t size = kLargest; size > kCoarseStep; size -= kCoarseStep) {
        take_all(size - kHeader, end);
    }
    for (std::size_t size = kCoarseStep; size > kFineStep; size -= kFineStep) {
        take_all(size - kHeader, end);
    }
}

}  // namespace cellkeep::kernels
