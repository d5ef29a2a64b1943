// SPDX-License-Identifier: Apache-2.0
//
// What this host offers, probed by trying, not by version. `cellkeep doctor` prints it; create()
// uses it for its hints. Probing forks short-lived children and takes some milliseconds.
#pragma once

#include "sandbox/policy/host_mode.hpp"
#include "sandbox/policy/isolation.hpp"
#include "sandbox/policy/policy.hpp"

#include <string>
#include <vector>

namespace cellkeep::sandbox {

struct HostFeatures {
    RunMode mode = RunMode::kRootless;
    std::string kernel_release;
    int landlock_abi = 0;       // 0: none
    std::string cgroup_layout;  // "v2", "v1", "hybrid", "none"
    /// One row per control of sandbox/policy/isolation.hpp: what a session made now with no
    /// degradation allowed would get, and the fix for what it would not.
    std::vector<Control> controls;
};

/// With the images and read-only paths that a session of this server would get, if it has any.
HostFeatures probe_host(
    const std::vector<PrivateImage>& images = {}, const std::vector<ReadOnlyPath>& read_only = {});

}  // namespace cellkeep::sandbox
