// SPDX-License-Identifier: Apache-2.0
//
// What the server and a copy of an interpreter that sleeps say to one another: one fixed struct per
// SOCK_SEQPACKET message. Both are built from one source tree, so there is no version to negotiate.
// The copy is the guest's: the server believes nothing of what it says.
#pragma once

#include "sandbox/shared/branch_namespaces.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cellkeep::sandbox {

/// What the server wants of a copy. The numbers stay: a copy may be older than the server, after an
/// upgrade, and then knows the first two only.
enum class WakeKind : std::uint32_t {
    kGoOn = 0,     // a process that goes on, with kWakeFds descriptors: stdout, stderr and its link
    kBranch = 1,   // one that leaves for a sandbox of its own, with kBranchWakeFds: after those a
                   // SOCK_SEQPACKET socket, the gate, and the namespaces, as kBranchNamespaces
    kPrepare = 2,  // a fork that waits; the next process that goes on is that one
    kLetGo = 3,    // that fork ends
};

/// From the server.
struct WakeRequest {
    std::uint32_t sequence = 0;
    std::uint32_t reseed = 0;  // 1: its random states are made anew
    WakeKind kind = WakeKind::kGoOn;
};
inline constexpr std::size_t kWakeFds = 3;
inline constexpr std::size_t kBranchWakeFds = kWakeFds + 1 + kBranchNamespaceCount;

/// Through the gate: one byte from the server when the fork may leave, and then this from it.
struct LeaveReport {
    std::uint32_t step = 0;   // what failed: of kBranchNamespaces, or behind them
    std::int32_t error = 0;   // an errno; 0: it is there
    std::int32_t forked = 0;  // its number in the branch
};
/// How many of its calls the filter hands to pid 1 meanwhile, at most: the namespaces, and what
/// takes the capabilities away. The filter of a session that is older than the server hands over
/// one call for each capability that a kernel may know.
inline constexpr std::uint32_t kLeavingCallsMax = 96;

/// To the server: the process is there, and waits until its link is readable, or until it is the
/// next to go on.
struct WakeReply {
    std::uint32_t sequence = 0;
    /// Its number inside; an errno below 0: there is none. The copy's own if one was let go.
    std::int32_t forked = 0;
};
/// The first message of a copy is a WakeReply with this number and its own process number: it has
/// left the process group that it was forked in. Before, what kills that group kills the copy.
inline constexpr std::uint32_t kAsleepSequence = 0;

static_assert(std::is_trivially_copyable_v<WakeRequest>);
static_assert(std::is_trivially_copyable_v<WakeReply>);
static_assert(std::is_trivially_copyable_v<LeaveReport>);

}  // namespace cellkeep::sandbox
