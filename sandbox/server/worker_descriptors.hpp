// SPDX-License-Identifier: Apache-2.0
//
// What may cross the wall into a worker: pipes and connected Unix socket pairs, nothing else. A
// socket keeps the network that it was made in, in every process, and a directory leads to the
// host's files (CVE-2024-21626), so neither is ever handed over. The server asks first; pid 1 asks
// again about what it has received (init.cpp).
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/shared/messages.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace cellkeep::sandbox {

/// A kStart, or a kAdopt if the spec names a process (WorkerSpec::forked).
struct StartMessage {
    RequestHeader header;
    /// Directory, arguments and variables, each with its end (messages.hpp); kAdopt: empty.
    std::string text;
    /// The worker's descriptors from 1 upwards, borrowed from the spec; kAdopt: none.
    std::vector<int> fds;
};
/// Without the worker's number and its cgroup. kInvalidArgument, naming the descriptor that may not
/// cross; otherwise kInvalidArgument and kLimitExceeded as Sandbox::start() says.
Result<StartMessage> start_message(const WorkerSpec& spec);

/// Makes the session's user the owner of a pipe or a terminal. A pipe belongs to the user who made
/// it, and a guest that may not open it again cannot write to /dev/stderr. Without a descriptor it
/// does nothing.
Status give_pipe(const UniqueFd& fd, uid_t uid, gid_t gid);

/// The same of each pipe and terminal that a worker is to get.
Status give_channels(const WorkerSpec& spec, uid_t uid, gid_t gid);

}  // namespace cellkeep::sandbox
