// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a sandbox's groups of workers, for the server and for pid 1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cellkeep::sandbox {

/// Workers that can be killed together while others go on, by number. All that they start belongs
/// to their group, too. Where the host gives cgroups that can be killed, each group has its own;
/// elsewhere it is the process groups that its workers lead, and what has left those (setpgid(2),
/// setsid(2)) is only killed with everything else.
using WorkerGroup = std::uint32_t;
inline constexpr std::size_t kWorkerGroupsMax = 10;
/// The group of the copies that sleep (sandbox/inside/copy/sleeping_copy.hpp): no sweep of another
/// group takes them.
inline constexpr WorkerGroup kSleepingGroup = 8;
/// The group of the commands that clients start beside the interpreters. The same holds for them.
inline constexpr WorkerGroup kCommandGroup = 9;

}  // namespace cellkeep::sandbox
