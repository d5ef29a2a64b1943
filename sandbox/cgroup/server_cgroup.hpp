// SPDX-License-Identifier: Apache-2.0
//
// The server's own part of the cgroup tree: what it is called, and the parts of servers that are
// gone.
#pragma once

#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::sandbox {

/// "cellkeep-<pid>-<start time>-<pid namespace>" of this process: no two servers ever share it,
/// also where containers see one cgroup tree.
Result<std::string> server_cgroup_name();

/// Removes the empty directories of servers of this pid namespace that are gone (sandbox.hpp:
/// sweep_leftovers); what was frozen there with cgroup v1 goes on to its death first. Never removes
/// one that holds a process.
Status sweep_cgroups();

}  // namespace cellkeep::sandbox
