// SPDX-License-Identifier: Apache-2.0
//
// System calls where errno must not be touched: in the handler of a signal that another thread is
// stopped by, and in a thread that is made anew. x86-64. Rules of child_setup.hpp apply.
#pragma once

#if defined(__x86_64__)

#include <cstdint>

namespace cellkeep::sandbox {

/// What the kernel returns: an errno is below 0.
inline long call_kernel(long number, long a = 0, long b = 0, long c = 0, long d = 0) noexcept {
    long result = 0;
    register long fourth asm("r10") = d;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                 : "rcx", "r11", "memory");
    return result;
}

template <typename T>
long address_of(T* pointer) noexcept {
    return static_cast<long>(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace cellkeep::sandbox

#endif
