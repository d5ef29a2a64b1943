// SPDX-License-Identifier: Apache-2.0
//
// What pid 1 knows of the groups of its workers (sandbox.hpp, WorkerGroup): which process began
// each, and which are being killed and are not over yet. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/shared/messages.hpp"

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace cellkeep::sandbox {

struct GroupSweep {
    pid_t leader = 0;    // of the process group of the newest worker; 0: there was none
    int events_fd = -1;  // of its cgroup, while it is being killed; -1: it has none
    bool pending = false;
    bool tells = false;  // an event is owed
};

struct GroupSweeps {
    std::array<GroupSweep, kWorkerGroupsMax> groups{};
};

/// Whether the descriptor is a file of a cgroup v2 hierarchy, opened for that access (O_RDONLY or
/// O_WRONLY) alone.
bool is_cgroup_file(int fd, int access) noexcept;

/// Kills the process group that the newest worker leads; what has left that only the cgroup knows,
/// whose own kill is the server's. Takes events_fd over.
void begin_group_sweep(GroupSweep& sweep, int events_fd) noexcept;
/// Whether nothing of its cgroup runs any more; true without one.
bool is_group_empty(const GroupSweep& sweep) noexcept;
void end_group_sweep(GroupSweep& sweep) noexcept;

}  // namespace cellkeep::sandbox
