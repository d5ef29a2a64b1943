// SPDX-License-Identifier: Apache-2.0
//
// The cellkeep-sandbox program as a child of the server: found, executed, waited for, ended. The
// only place where the server starts a process. Thread-safe; nothing here keeps state.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <span>
#include <string>

namespace cellkeep::sandbox {

/// launcher empty: cellkeep-sandbox beside the running program.
Result<std::string> find_launcher(const std::string& launcher);

/// posix_spawn(3): vfork semantics, so the server's memory is neither copied nor seen; no
/// environment; signals as at boot; fds at kLauncherControlFd and up, everything above them closed.
/// argument: the one argument, or empty for none.
Result<pid_t> spawn_launcher(
    const std::string& path, const std::string& argument, std::span<const int> fds);

/// The handle of a launcher just spawned. Empty if it has ended and the kernel has reaped it; on
/// failure it is killed and reaped.
Result<UniqueFd> open_launcher(pid_t pid);

/// kTimeout after the deadline.
Status wait_until_readable(int fd, std::chrono::steady_clock::time_point deadline);

/// SIGKILL and waitid(2) through the pidfd; kTimeout if the kernel has not let go after patience:
/// then it may be called again. Nothing to do for an empty descriptor.
Status kill_and_reap(const UniqueFd& pidfd, std::chrono::milliseconds patience);

}  // namespace cellkeep::sandbox
