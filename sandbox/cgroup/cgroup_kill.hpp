// SPDX-License-Identifier: Apache-2.0
//
// The end of all processes of a v2 cgroup. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

namespace cellkeep::sandbox {

/// SIGKILL to every process. kill is its cgroup.kill, which passes over a process whose first
/// thread has ended and others have not (Linux 6.18); procs is its cgroup.procs, by which those get
/// theirs. Nothing outside of the cgroup is meant, whatever numbers are used again meanwhile.
Status kill_processes(const UniqueFd& kill, const UniqueFd& procs);

}  // namespace cellkeep::sandbox
