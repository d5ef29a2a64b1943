// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/arena_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace cellkeep::kernels {

namespace {

constexpr std::uint8_t kBothArenas = 3;
constexpr int kArenaRights = PROT_READ | PROT_WRITE;

void* pointer_to_arena(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

void* map_anonymous(std::size_t bytes, int rights, int more_flags) {
    void* const memory =
        ::mmap(nullptr, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

ArenaSpace::~ArenaSpace() {
    if (begin_ != 0) {
        (void)::munmap(pointer_to_arena(begin_), bytes_);  // Ignored: it is ours.
    }
}

/// Addresses that begin with a huge page. What was taken too much is given back.
bool ArenaSpace::reserve() {
    if (begin_ != 0 || refused_) {
        return begin_ != 0;
    }
    refused_ = true;
    const std::size_t all = bytes_ + kUnitBytes;
    void* const whole = map_anonymous(all, PROT_NONE, MAP_NORESERVE);
    if (whole == nullptr) {
        return false;
    }
    try {
        units_.assign(bytes_ / kUnitBytes, 0);
    } catch (const std::bad_alloc&) {
        (void)::munmap(whole, all);  // Ignored: it is ours.
        return false;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(whole);
    const std::uintptr_t begin = (first + kUnitBytes - 1) & ~(kUnitBytes - 1);
    const std::size_t before = begin - first;
    // Ignored: what is not given back are addresses, without memory.
    (void)(before == 0 || ::munmap(whole, before) == 0);
    (void)::munmap(pointer_to_arena(begin + bytes_), kUnitBytes - before);
    begin_ = begin;
    return true;
}

void* ArenaSpace::allocate_arena() {
    if (!reserve()) {
        return nullptr;
    }
    const auto room = std::find_if(
        units_.begin() + static_cast<std::ptrdiff_t>(lowest_), units_.end(), [](auto used) {
            return used != kBothArenas;
        });
    lowest_ = static_cast<std::size_t>(room - units_.begin());
    if (room == units_.end()) {
        return nullptr;
    }
    const std::uintptr_t unit = begin_ + lowest_ * kUnitBytes;
    if (*room == 0 && ::mprotect(pointer_to_arena(unit), kUnitBytes, kArenaRights) != 0) {
        return nullptr;
    }
    const bool second = (*room & 1U) != 0;
    *room = static_cast<std::uint8_t>(*room | (second ? 2U : 1U));
    return pointer_to_arena(unit + (second ? kArenaBytes : 0));
}

void* ArenaSpace::allocate(std::size_t bytes) {
    if (bytes == kArenaBytes) {
        const std::lock_guard held(mutex_);
        if (void* const arena = allocate_arena()) {
            return arena;
        }
    }
    return map_anonymous(bytes, kArenaRights, 0);
}

void ArenaSpace::free(void* memory, std::size_t bytes) {
    const std::lock_guard held(mutex_);
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    if (begin_ == 0 || address < begin_ || address >= begin_ + bytes_) {
        (void)::munmap(memory, bytes);  // Ignored: it is what a mapping was made of.
        return;
    }
    // Ignored, both: memory that the system does not take back is used again.
    (void)::madvise(memory, kArenaBytes, MADV_DONTNEED);
    const std::size_t index = (address - begin_) / kUnitBytes;
    const bool second = (address - begin_) % kUnitBytes != 0;
    units_[index] = static_cast<std::uint8_t>(units_[index] & (second ? 1U : 2U));
    if (units_[index] == 0) {
        (void)::mprotect(pointer_to_arena(begin_ + index * kUnitBytes), kUnitBytes, PROT_NONE);
    }
    lowest_ = std::min(lowest_, index);
}

}  // namespace cellkeep::kernels
