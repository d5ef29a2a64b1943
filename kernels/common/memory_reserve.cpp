// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/memory_reserve.hpp"

#include <sys/mman.h>

namespace cellkeep::kernels {

void MemoryReserve::hold() {
    if (bytes_ != 0) {
        return;
    }
    for (std::size_t bytes = kMemoryReserveBytes; bytes >= kMemoryReserveBytesMin; bytes /= 2) {
        void* const room =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room != MAP_FAILED) {
            room_ = room;
            bytes_ = bytes;
            return;
        }
    }
}

void MemoryReserve::release() {
    if (bytes_ != 0) {
        (void)::munmap(room_, bytes_);  // Ignored: it is ours.
        bytes_ = 0;
    }
}

}  // namespace cellkeep::kernels
