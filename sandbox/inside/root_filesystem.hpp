// SPDX-License-Identifier: Apache-2.0
//
// The sandbox's root: a small tmpfs with read-only clones of the host paths of the plan, private
// tmpfs mounts, five devices and a fresh /proc. Rules of child_setup.hpp apply: errno results, no
// allocation.
#pragma once

#include "sandbox/inside/child_setup.hpp"

namespace cellkeep::sandbox {

/// Clones the plan's host paths and the devices as detached, read-only mounts (open_tree(2),
/// mount_setattr(2)). A privileged server's launcher calls it before the clone, with the server's
/// powers over paths; otherwise the child does, in its own mount namespace.
int clone_host_mounts(ChildState& state, SetupStep& step);

/// Builds the new root on a tmpfs and makes it the root; the old root is gone afterwards.
int build_root(ChildState& state, SetupStep& step);

/// The root of a branch: its parent's, with directories of its own over those that a guest writes
/// to and over /proc.
int cover_root(ChildState& state, SetupStep& step);

}  // namespace cellkeep::sandbox
