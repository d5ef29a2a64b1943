// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/interrupted_wait.hpp"

#if defined(__x86_64__)

#include <linux/futex.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace cellkeep::sandbox {

namespace {

/// Waits that the kernel does not repeat after a handler, whatever SA_RESTART says (signal(7)).
bool is_wait_to_repeat(long number, const greg_t* registers) {
    switch (number) {
        case SYS_poll:
            return static_cast<int>(registers[REG_RDX]) < 0;
        case SYS_ppoll:
            return registers[REG_RDX] == 0 && registers[REG_R10] == 0;
        case SYS_select:
            return registers[REG_R8] == 0;
        case SYS_pselect6:
            return registers[REG_R8] == 0 && registers[REG_R9] == 0;
        case SYS_epoll_wait:
            return static_cast<int>(registers[REG_R10]) < 0;
        case SYS_epoll_pwait:
            return static_cast<int>(registers[REG_R10]) < 0 && registers[REG_R8] == 0;
        case SYS_clock_nanosleep:
            return (registers[REG_RSI] & TIMER_ABSTIME) != 0;
        case SYS_futex:
            return (registers[REG_RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
        case SYS_pause:
            return true;
        default:
            return false;
    }
}

}  // namespace

/// Only of a call as the C library makes it: "mov $number, %eax; syscall".
void repeat_wait(ucontext_t& interrupted) noexcept {
    constexpr std::uintptr_t kPageMask = 4095;
    constexpr std::uintptr_t kBytesBefore = 7;
    greg_t* const registers = interrupted.uc_mcontext.gregs;
    const auto next = static_cast<std::uintptr_t>(registers[REG_RIP]);
    // Bytes of the same page as the next instruction can be read.
    if (registers[REG_RAX] != -EINTR || (next & kPageMask) < kBytesBefore) {
        return;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives the address as a number.
    const auto* const code = reinterpret_cast<const unsigned char*>(next) - kBytesBefore;
    if (code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05) {
        return;
    }
    std::uint32_t number = 0;
    std::memcpy(&number, code + 1, sizeof(number));
    if (is_wait_to_repeat(number, registers)) {
        registers[REG_RAX] = number;
        registers[REG_RIP] -= 2;  // the instruction "syscall"
    }
}

}  // namespace cellkeep::sandbox

#endif
