// SPDX-License-Identifier: Apache-2.0
//
// What makes one sandbox, in a process of its own with one thread: the namespaces with pid 1 as a
// sibling (CLONE_PARENT), the id maps, the cgroups. That process is the launcher program, or a fork
// of a zygote, which makes pid 1 one that can become the zygote's program without an exec. Rules of
// child_setup.hpp apply, but that a plan may be decoded into memory of its own.
#pragma once

#include "sandbox/inside/child_setup.hpp"

namespace cellkeep::sandbox {

/// Carries out the plan at kLauncherPlanFd; tells everything through kLauncherControlFd. Returns
/// the exit status for this process; in pid 1 it does not return. entry: what a warm worker runs,
/// or null.
int launch_sandbox(WarmEntry entry);

/// Makes a network namespace (kMakeNetwork) and tells of it. The exit status.
int launch_network();

}  // namespace cellkeep::sandbox
