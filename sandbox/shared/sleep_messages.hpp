// SPDX-License-Identifier: Apache-2.0
//
// What the server and a copy of an interpreter that sleeps say to one another: one fixed struct per
// SOCK_SEQPACKET message. Both are built from one source tree, so there is no version to negotiate.
// The copy is the guest's: the server believes nothing of what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cellkeep::sandbox {

/// From the server, with kWakeFds descriptors: stdout, stderr and the link of the process that goes
/// on from the copy.
struct WakeRequest {
    std::uint32_t sequence = 0;
    std::uint32_t reseed = 0;  // 1: its random states are made anew
};
inline constexpr std::size_t kWakeFds = 3;

/// To the server: the process is there, and waits until its link is readable.
struct WakeReply {
    std::uint32_t sequence = 0;
    std::int32_t forked = 0;  // its number inside; an errno below 0: there is none
};

static_assert(std::is_trivially_copyable_v<WakeRequest>);
static_assert(std::is_trivially_copyable_v<WakeReply>);

}  // namespace cellkeep::sandbox
