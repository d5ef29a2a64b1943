// SPDX-License-Identifier: Apache-2.0
//
// A thread that stands still in the handler of a signal, and is made anew in a fork of its process.
// x86-64 and glibc. Rules of child_setup.hpp apply.
#pragma once

#if defined(__x86_64__)

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cellkeep::sandbox {

/// Where a thread stands between save_registers() and resume(): rbx, rbp, r12 to r15, rsp, rip.
using Registers = std::array<std::uint64_t, 8>;
inline constexpr std::size_t kStackPointer = 6;

enum class ThreadState : int {
    kFree,
    kAsked,   // it has the signal
    kParked,  // it stands still
    kLeft     // it has gone on
};

/// What the kernel keeps for a thread. The signal mask and the alternate stack are in the frame of
/// the signal: returning from the handler sets them.
struct ThreadRecord {
    Registers registers{};
    std::atomic<ThreadState> state{ThreadState::kFree};
    pid_t thread = 0;
    std::uintptr_t thread_pointer = 0;
    int* tid_address = nullptr;  // the word that the kernel clears when the thread ends
    void* robust_list = nullptr;
    std::size_t robust_size = 0;
    bool has_rseq = false;
    std::array<char, 16> name{};
    std::array<unsigned char, 128> processors{};  // a mask of 1,024
    long processors_size = 0;
    bool has_own_processors = false;  // others than the thread that makes it anew
};

/// Of the calling thread.
void note_thread(ThreadRecord& record) noexcept;

/// Makes a kernel thread, in a fork, of a thread that called cellkeep_save_registers(): there it
/// returns once more, with 1. Returns an errno.
int begin_again(ThreadRecord& record) noexcept;

}  // namespace cellkeep::sandbox

extern "C" {
/// Saves the registers that a function must keep, and returns 0. Defined in assembly.
int cellkeep_save_registers(std::uint64_t* registers) __attribute__((returns_twice));
}

#endif
