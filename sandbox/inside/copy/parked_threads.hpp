// SPDX-License-Identifier: Apache-2.0
//
// A fork of a process with all its threads. Each thread but the caller is stopped in the handler of
// a signal, and a bare clone(2) copies the process. There the stopped threads are made anew: each
// gets its old stack and thread pointer, and returns from the handler as if nothing had happened.
//
// No pthread_atfork(3) handler runs: those are there because a fork loses threads. For the same
// reason a lock that a stopped thread holds is not lost either: in the fork, its holder lets go of
// it. Until the threads go on, the caller must not take a lock, and so must not allocate.
//
// glibc's notes of a thread keep the number that it had before the fork: a recursive mutex knows
// its holder by it. gettid(2) gives the new one.
//
// Rules of child_setup.hpp apply. One thread at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>

namespace cellkeep::sandbox {

/// Other threads that a process may have to be copied with them.
inline constexpr std::size_t kParkedThreadsMax = 2048;
/// How long a thread may take to stop. One that computes, or waits for anything but a disk, stops
/// at once.
inline constexpr std::chrono::milliseconds kParkPatience{2000};

/// Whether this is a processor for which this is written (x86-64).
bool can_park_threads() noexcept;

struct Parked {
    int error = 0;     // ETIMEDOUT: thread did not stop; E2BIG: more than kParkedThreadsMax
    pid_t thread = 0;  // the one that did not stop, or that no C library made
};

/// Stops all other threads of this process. Every signal must be blocked in the caller.
/// unpark_threads() follows in any case.
Parked park_threads(std::chrono::milliseconds patience = kParkPatience) noexcept;

/// The stopped threads of this process go on.
void unpark_threads() noexcept;

/// In a fork of a process whose threads were stopped, once, or in a fork of that: makes them anew,
/// and they go on. The fork has one thread, and was not made by fork(3).
int revive_threads() noexcept;

}  // namespace cellkeep::sandbox
