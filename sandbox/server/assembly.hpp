// SPDX-License-Identifier: Apache-2.0
//
// Puts a sandbox together from its parts: policy check, cgroup, seccomp program, plan, launch, and
// the isolation report of what was applied. Used by Sandbox::create, which refuses what is missing,
// and by probe_host, which wants to know all of it.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/cgroup/cgroup.hpp"
#include "sandbox/policy/isolation.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/server/launch.hpp"

namespace cellkeep::sandbox {

class Zygote;

enum class MissingControl {
    kRefuse,  // a control that is missing and not in policy.allow_degraded is an error
    kReport,  // every waivable control is waived
};

struct Assembled {
    Launched pid1;
    SessionCgroup cgroup;
    IsolationReport isolation;
    uid_t file_uid = 0;
    gid_t file_gid = 0;
};

/// How many cgroups of sessions have been named in this process, by this program and those before
/// it: what is named from now on has a higher number.
std::uint64_t sessions_named();
void name_sessions_from(std::uint64_t count);

/// On failure, *reached (if not null) holds the report of what had been applied until then.
/// zygote: makes it; or null, then the launcher does. branches: makes it as a branch; or null.
Result<Assembled> assemble(
    const Policy& policy,
    MissingControl missing,
    IsolationReport* reached,
    const Zygote* zygote = nullptr,
    BranchLauncher* branches = nullptr);

}  // namespace cellkeep::sandbox
