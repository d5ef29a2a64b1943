// SPDX-License-Identifier: Apache-2.0
//
// What a sandbox could not take away in time: a pid 1 that the kernel had not let go of, cgroup
// directories that still held a dying process. Kept for the whole server and tried again, without
// waiting, whenever a sandbox is made or ends, and waited for when the server ends. Owns the
// handles. Never kills. Thread-safe.
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

/// How many the server remembers. The oldest beyond it are forgotten: the next server's sweep
/// (sandbox.hpp: sweep_leftovers) removes their directories.
inline constexpr std::size_t kLeftoversMax = 1024;

struct Leftover {
    UniqueFd pidfd;                        // a killed pid 1 to be reaped first; may be empty
    std::vector<std::string> directories;  // of cgroups, each with one above it for the server
};

void leave_behind(Leftover leftover);

/// Reaps and removes what can be by now; how many are still left.
std::size_t clear_leftovers();

/// Blocks until nothing is left, at most that long; how many still are.
std::size_t wait_for_leftovers(std::chrono::milliseconds patience);

/// Removes a session's cgroup directory, and the server's above it if that was the last one. 0, or
/// rmdir's errno; a directory that is gone is no failure.
int remove_session_directory(const std::string& path);

}  // namespace cellkeep::sandbox
