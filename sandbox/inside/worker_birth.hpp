// SPDX-License-Identifier: Apache-2.0
//
// From the fork of pid 1 to the worker's program: its cgroup, its process session, its descriptors,
// asserted, its limit of open files, its directory. Everything else of the wall is inherited from
// pid 1. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/inside/child_setup.hpp"
#include "sandbox/inside/start_request.hpp"

#include <cstdint>
#include <span>

namespace cellkeep::sandbox {

/// What a fresh fork of pid 1 needs besides the request.
struct Newborn {
    std::span<const int> received;  // become the lowest descriptors; each above what it becomes
    int cgroup_fd = -1;             // the workers' cgroup.procs, or -1
    std::uint64_t open_files = 0;   // RLIMIT_NOFILE
    bool own_input = false;         // they begin with descriptor 0, which else is /dev/null
    bool own_terminal = false;      // … and are a terminal that controls the worker
    int failure_fd = -1;            // takes a WorkerFailure if there is no program in the end
    WarmEntry entry = nullptr;      // for a warm start
};

[[noreturn]] void become_worker(Newborn newborn, const Start& start) noexcept;

}  // namespace cellkeep::sandbox
