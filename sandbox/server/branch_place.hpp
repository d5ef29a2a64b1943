// SPDX-License-Identifier: Apache-2.0
//
// Where a branch is made: the namespaces of a process in its parent's sandbox, and what the server
// asks of a process on its way from there. All of it is read from /proc. Thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace cellkeep::sandbox {

/// Descriptors of namespaces. A guest cannot change those that it is in.
struct BranchPlace {
    UniqueFd mount;
    UniqueFd pid;
    UniqueFd user;
};
/// kUnavailable: the process is gone, or the host does not show it.
Result<BranchPlace> find_place(const UniqueFd& pidfd);

/// The numbers of a process in the pid namespaces that it is in, from the server's to its own.
Result<std::vector<pid_t>> numbers_of(const UniqueFd& pidfd);

/// kPermissionDenied if the process has any capability, or could get one by an exec.
Status check_powerless(const UniqueFd& pidfd);

/// Moves a process to cgroups, by their cgroup.procs files. Blocks for some milliseconds each.
Status move_to_cgroups(const UniqueFd& pidfd, const std::vector<std::string>& files);

/// SIGKILL to all that is in cgroups, but to one process, until nothing else is there. kTimeout if
/// it does not end.
Status kill_all_but(const std::vector<std::string>& files, const UniqueFd& spared);

}  // namespace cellkeep::sandbox
