// SPDX-License-Identifier: Apache-2.0
//
// From a fresh clone to a locked-down pid 1: the one place where the order of the wall is written
// down (run_child in child_setup.cpp; sandbox/SECURITY.md explains each step). Runs in the
// launcher's child. Rules of this file and of its parts (root_filesystem, lockdown, init):
// functions return an errno, 0 for success; nothing allocates, throws, logs or returns from the top
// frame; the first failure wins and names its step.
#pragma once

#include "sandbox/shared/messages.hpp"
#include "sandbox/shared/plan.hpp"

#include <array>
#include <cstdint>

namespace cellkeep::sandbox {

/// The nodes of the sandbox's /dev.
struct DeviceNode {
    const char* host_path;
    const char* path;  // relative to the new root
    unsigned minor;    // all have major number 1 (mem)
};
inline constexpr std::array<DeviceNode, 5> kDeviceNodes{{
    {"/dev/null", "dev/null", 3},
    {"/dev/zero", "dev/zero", 5},
    {"/dev/full", "dev/full", 7},
    {"/dev/random", "dev/random", 8},
    {"/dev/urandom", "dev/urandom", 9},
}};

/// What a worker runs instead of an exec, in a sandbox made by a zygote: the zygote's own program,
/// from where it was when it began to serve. The strings of the environment ("NAME=value", ended by
/// a null pointer) lie in the worker's memory for good. Must not return.
using WarmEntry = void (*)(char* const* environment);

/// Everything the child works on. The plan outlives it.
struct ChildState {
    const Plan* plan = nullptr;
    int control_fd = -1;
    int events_fd = -1;
    int go_fd = -1;  // a byte when the id maps are written, one more when the cgroups are joined
    /// A whole /proc of the new pid namespace, attached nowhere; in a branch the host's.
    int proc_fd = -1;
    int oom_adj_fd = -1;        // pid 1's own /proc/self/oom_score_adj
    int worker_cgroup_fd = -1;  // the cgroup.procs file of the plan, opened by the server's user
    std::array<char, 8> oom_adj{};  // what it said at first, a C string
    int workspace_fd = -1;
    int denial_fd = -1;                         // seccomp notifications; -1: none are to be had
    WarmEntry entry = nullptr;                  // null: workers are programs only
    std::uint32_t index = 0;                    // what of the plan a failing step was at
    std::array<int, kPlanPathsMax> tree_fds{};  // detached mounts; -1: skipped
    std::array<int, kDeviceNodes.size()> device_fds{};  // detached mounts
    ChildReport report;
};

[[noreturn]] void run_child(ChildState& state) noexcept;

}  // namespace cellkeep::sandbox
