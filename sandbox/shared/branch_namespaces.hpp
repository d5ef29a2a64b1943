// SPDX-License-Identifier: Apache-2.0
//
// The namespaces of a branch: a sandbox that is made inside another one, its parent, for a process
// that a worker of the parent has forked. In the order in which that process enters them: the outer
// user namespace owns the others, so it comes first, and the guest's own comes last.
#pragma once

#include <sched.h>

#include <array>
#include <cstddef>

namespace cellkeep::sandbox {

struct BranchNamespace {
    const char* file;  // of proc_pid_ns(5)
    int flag;
};
inline constexpr std::array<BranchNamespace, 8> kBranchNamespaces{{
    {"user", CLONE_NEWUSER},
    {"mnt", CLONE_NEWNS},
    {"pid", CLONE_NEWPID},
    {"ipc", CLONE_NEWIPC},
    {"uts", CLONE_NEWUTS},
    {"net", CLONE_NEWNET},
    {"cgroup", CLONE_NEWCGROUP},
    {"user", CLONE_NEWUSER},  // beneath the first: the guest's
}};
inline constexpr std::size_t kBranchNamespaceCount = kBranchNamespaces.size();
/// Of them, those that are there before pid 1 of the branch locks itself down.
inline constexpr std::size_t kBranchOuterCount = kBranchNamespaceCount - 1;

}  // namespace cellkeep::sandbox
