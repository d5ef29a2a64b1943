// SPDX-License-Identifier: Apache-2.0
//
// The launcher of a branch: a sandbox inside another one, its parent. It enters the parent's
// namespaces from outside, as their owner may, and makes the branch's beneath them. No code of a
// guest's runs in it. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/inside/child_setup.hpp"

#include <sys/types.h>

#include <array>
#include <cstddef>

namespace cellkeep::sandbox {

/// User namespaces above the guests of a parent, at most: what the kernel allows.
inline constexpr std::size_t kUserNamespacesAbove = 33;

/// The processes that keep the parent's bound on user namespaces open while those of the branch are
/// made, one for each that has one. They put it back when the last descriptor of `done` is closed:
/// pid 1 of the branch closes its own when it has made them.
struct RoomKeepers {
    std::array<pid_t, kUserNamespacesAbove> pids{};
    std::size_t count = 0;
    int done = -1;
};

/// Makes room and enters the parent's mount, pid and user namespaces, as the guest's user. From
/// here on state.proc_fd is the host's /proc. An errno, and the step.
int enter_parent(ChildState& state, RoomKeepers& keepers, SetupStep& step);

/// The number of a process in the host's pid namespace, by its pidfd; an errno below 0.
pid_t host_pid(int proc_fd, int pidfd);

/// The end of the process that has called enter_parent(): waits for its child and for the keepers.
int wait_for_branch(const RoomKeepers& keepers, pid_t child);

}  // namespace cellkeep::sandbox
