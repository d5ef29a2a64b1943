// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/memory_reserve.hpp"

#include <sys/mman.h>

namespace cellkeep::kernels {

void MemoryReserve::hold() {
    if (room_ != nullptr) {
        return;
    }
    void* const room = ::mmap(
        nullptr, kMemoryReserveBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    room_ = room == MAP_FAILED ? nullptr : room;
}

void MemoryReserve::release() {
    if (room_ != nullptr) {
        (void)::munmap(room_, kMemoryReserveBytes);  // Ignored: it is ours.
        room_ = nullptr;
    }
}

}  // namespace cellkeep::kernels
