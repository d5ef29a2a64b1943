// SPDX-License-Identifier: Apache-2.0
//
// From a policy to the plan that the launcher carries out: checks every value, decides mounts,
// /etc, links and rlimits. Pure: touches nothing of the host.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/shared/plan.hpp"

#include <string>
#include <vector>

namespace cellkeep::sandbox {

struct PlanInputs {
    RunMode mode = RunMode::kRootless;
    uid_t own_uid = 0;  // the server's effective ids, mapped when it is not root
    gid_t own_gid = 0;
    std::vector<std::string> cgroup_procs;
    std::string worker_procs;
    std::string seccomp;
    bool branch = false;                     // made in another sandbox: Plan::branch
    bool nested = false;                     // made in a zygote, whose root has the same paths
    std::uint64_t inherited_data = 0;        // what a zygote's fork has of RLIMIT_DATA used already
    bool enter_network = false;              // a network namespace is at hand
    bool limit_memory_by_rlimit = false;     // no memory cgroup: RLIMIT_DATA per process
    bool limit_processes_by_rlimit = false;  // no pids cgroup: RLIMIT_NPROC is what counts
};

/// kInvalidArgument if a session cannot be shown this: no clean absolute path, or one beneath what
/// is the sandbox's own (/tmp, /workspace).
Status check_read_only(const ReadOnlyPath& path);

/// kInvalidArgument, naming the field, if the policy asks for something impossible or unsafe.
Status check_policy(const Policy& policy, RunMode mode);

/// Precondition: check_policy(policy) succeeded.
Plan build_plan(const Policy& policy, const PlanInputs& inputs);

}  // namespace cellkeep::sandbox
