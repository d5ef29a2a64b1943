// SPDX-License-Identifier: Apache-2.0
//
// Address space that is kept free so that a lack of memory can be reported. A process whose data is
// limited (RLIMIT_DATA, getrlimit(2)) has used up what it may when its code learns so, and the
// report takes memory, too. No page of it is written to: it costs no memory, but a part of the
// limit.
#pragma once

#include <cstddef>

namespace cellkeep::kernels {

/// A traceback of IPython's with its colours takes less than half a megabyte, and may begin with
/// two arenas of CPython's, which are 2 MiB (arena_space.hpp).
inline constexpr std::size_t kMemoryReserveBytes = 4UL << 20U;
/// Less than this is not worth keeping.
inline constexpr std::size_t kMemoryReserveBytesMin = 512UL << 10U;

/// One thread.
class MemoryReserve {
 public:
    MemoryReserve() = default;
    MemoryReserve(const MemoryReserve&) = delete;
    MemoryReserve& operator=(const MemoryReserve&) = delete;
    ~MemoryReserve() { release(); }

    /// Keeps it, or half of it, or less, where there is no more; does nothing if some is kept.
    void hold();
    /// Unmaps it. Any allocation of this process may use the room then.
    void release();
    /// 0: none is kept.
    std::size_t bytes() const { return bytes_; }

 private:
    void* room_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace cellkeep::kernels
