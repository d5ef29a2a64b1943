// SPDX-License-Identifier: Apache-2.0
//
// The launcher of branches: of the sandboxes inside another one, their parent. It enters the
// parent's namespaces from outside, as their owner may, and makes those of each branch beneath
// them. No code of a guest's runs in it. Rules of child_setup.hpp apply.
#pragma once

#include <sys/types.h>

namespace cellkeep::sandbox {

/// Enters the parent, and forks a launcher for each request of the server's (kMakeBranches), whose
/// parent process this is. Returns the exit status.
int launch_branches();

/// The number of a process in the host's pid namespace, by its pidfd; an errno below 0.
pid_t host_pid(int proc_fd, int pidfd);

}  // namespace cellkeep::sandbox
