// SPDX-License-Identifier: Apache-2.0
//
// How a sandbox's pid 1 ended, for the log. Its parent may be a zygote's pid 1, which reaps it
// without a look: so the kernel is asked through the pidfd (PIDFD_GET_INFO; Linux 6.15 or later
// tells of processes that were reaped).
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <chrono>
#include <string>

namespace cellkeep::sandbox {

/// The kernel tells of a process that its parent has reaped. A parent that has not done that after
/// this long is not waited for.
inline constexpr std::chrono::milliseconds kReaperPatience{1000};

/// "; it was killed by signal 9", "; its exit code was 3". Empty if the kernel does not tell.
/// Blocks for kReaperPatience at most. pidfd: of a process that has ended.
std::string describe_exit(const UniqueFd& pidfd);

}  // namespace cellkeep::sandbox
