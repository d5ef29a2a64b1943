// SPDX-License-Identifier: Apache-2.0
//
// Memory for an allocator that takes pieces of one size (arenas) from the system: side by side, in
// one range of addresses. Memory that is together is in one mapping, and in huge pages
// (zygote_memory.hpp); so a fork copies less. CPython's own allocator maps each arena by itself,
// wherever there is room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cellkeep::kernels {

/// Of CPython 3.10 and later (ARENA_SIZE in Objects/obmalloc.c).
inline constexpr std::size_t kArenaBytes = 1UL << 20U;
/// Addresses, of which only those in use are memory. They count against RLIMIT_AS, which user code
/// may set for itself (getrlimit(2)); so they are few. What needs more gets mappings of its own.
inline constexpr std::size_t kArenaSpaceBytes = 256UL << 20U;

/// Safe from any thread. A fork needs lock() before it and unlock() behind it in both processes.
class ArenaSpace {
 public:
    /// bytes: a multiple of two arenas. The addresses are taken with the first arena.
    explicit ArenaSpace(std::size_t bytes = kArenaSpaceBytes) : bytes_(bytes) {}
    ArenaSpace(const ArenaSpace&) = delete;
    ArenaSpace& operator=(const ArenaSpace&) = delete;
    ~ArenaSpace();

    /// Memory that can be read and written, of this size exactly: one arena if it is kArenaBytes,
    /// else a mapping of its own, as are those for which the space has no room. Null: the system
    /// has no memory (errno).
    void* allocate(std::size_t bytes);
    /// Takes what allocate() returned, or a mapping of that size that other code made. Linux gets
    /// the memory back at once. If it is half of a huge page, Linux gets it back when the other
    /// half is freed, or when memory is short.
    void free(void* memory, std::size_t bytes);

    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

 private:
    static constexpr std::size_t kUnitBytes = 2 * kArenaBytes;  // a huge page

    bool reserve();
    void* allocate_arena();

    const std::size_t bytes_;
    std::mutex mutex_;
    std::uintptr_t begin_ = 0;         // 0: not reserved
    bool refused_ = false;             // the system has no such range
    std::vector<std::uint8_t> units_;  // a bit for each arena of it that is in use
    std::size_t lowest_ = 0;           // no unit before this one has a free arena
};

}  // namespace cellkeep::kernels
