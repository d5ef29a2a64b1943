// SPDX-License-Identifier: Apache-2.0
//
// Whether anything inside a sandbox is at work, or will be by itself: seen from outside, by what
// each thread waits for (/proc/PID/task/TID/syscall, proc(5)), without waking any of them.
#pragma once

#include "protocol/support/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::sandbox {

/// Threads that are looked at, of all processes of a sandbox together; more count as work.
inline constexpr std::size_t kRestThreadsMax = 256;

/// line: of /proc/PID/task/TID/syscall. Returns whether the thread sleeps in a system call that
/// only ends when another process does something: a read, a poll or a lock without a time limit.
/// Returns false for a sleep, a wait that ends at a time, a write that blocks, a system call that
/// is not known here, and a line that cannot be understood.
bool waits_without_limit(std::string_view line);

/// Whether every thread of the processes in these cgroup.procs files does, but for one process,
/// the sandbox's pid 1. False if one comes or goes meanwhile. An error: this host does not show it.
Result<bool> all_wait_without_limit(const std::vector<std::string>& procs_files, pid_t pid1);

/// The process that a pidfd is of (proc(5), fdinfo); kUnavailable if it has ended.
Result<pid_t> pid_of(int pidfd);

}  // namespace cellkeep::sandbox
