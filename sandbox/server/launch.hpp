// SPDX-License-Identifier: Apache-2.0
//
// The server's side of making a sandbox: executes the launcher with a plan and waits until pid 1
// says that it is locked down. Blocks for some milliseconds, at most kLaunchPatience.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/server/launcher_process.hpp"
#include "sandbox/shared/messages.hpp"
#include "sandbox/shared/plan.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

/// On a host whose disk is busy, what a launch needs may have to be read first.
inline constexpr std::chrono::seconds kLaunchPatience{30};

/// Pid 1 as a child of this process, not reaped: kill_and_reap() ends it.
struct Launched {
    UniqueFd pidfd;
    UniqueFd control;    // SOCK_SEQPACKET: requests and replies
    UniqueFd events;     // SOCK_SEQPACKET, non-blocking: worker exits, then end of file
    UniqueFd workspace;  // O_PATH
    UniqueFd listener;   // for NetworkMode::kProxy: non-blocking, in the session's network
    std::vector<UniqueFd> namespaces;  // of a branch: in the order of kBranchNamespaces
    ChildReport report;
};

/// What a failed launch left to say besides its error.
struct LaunchFailure {
    SetupStep step = SetupStep::kReadPlan;
    int error = 0;
    ChildReport report;
};

/// launcher empty: cellkeep-sandbox beside the running program. network: the namespace to enter if
/// plan.enter_network (sandbox/server/network_pool.hpp), else ignored. On failure, *failure (if not
/// null) is filled in as far as the sandbox got.
Result<Launched> launch(
    const Plan& plan, const std::string& launcher, const UniqueFd& network, LaunchFailure* failure);

class Zygote;

/// The same by a fork of the zygote; of a plan that is nested.
Result<Launched> launch(const Plan& plan, const Zygote& zygote, LaunchFailure* failure);

class BranchLauncher;

/// The same in another sandbox, by the launcher of its branches; of a plan of a branch. One at a
/// time, in the whole process: others wait. program: as launcher above. A failure ends the
/// launcher's process; the next launch starts another.
Result<Launched> launch(
    const Plan& plan, BranchLauncher& launcher, const std::string& program, LaunchFailure* failure);

}  // namespace cellkeep::sandbox
