// SPDX-License-Identifier: Apache-2.0
//
// Room that is kept for the words that there is no memory. A process whose data is limited
// (RLIMIT_DATA, getrlimit(2)) has used up what it may when its code is told so; without room its
// own report of that could end it. Only addresses are kept, so it costs no memory.
#pragma once

#include <cstddef>

namespace cellkeep::kernels {

/// A traceback of IPython's with its colours takes less than half a megabyte.
inline constexpr std::size_t kMemoryReserveBytes = 2UL << 20U;

/// One thread.
class MemoryReserve {
 public:
    MemoryReserve() = default;
    MemoryReserve(const MemoryReserve&) = delete;
    MemoryReserve& operator=(const MemoryReserve&) = delete;
    ~MemoryReserve() { release(); }

    /// Keeps the room if there is any; does nothing if it is kept.
    void hold();
    /// Lets it go, for whoever comes first.
    void release();
    bool is_held() const { return room_ != nullptr; }

 private:
    void* room_ = nullptr;
};

}  // namespace cellkeep::kernels
