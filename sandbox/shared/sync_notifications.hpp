// SPDX-License-Identifier: Apache-2.0
//
// A flag of the listener for refused calls (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6): Linux
// wakes pid 1 on the processor of the thread that calls, and that thread on pid 1's. So neither
// waits for another processor to wake up. Debian 12's <linux/seccomp.h> does not have it. Values.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace cellkeep::sandbox {

/// SECCOMP_IOCTL_NOTIF_SET_FLAGS; an older kernel says EINVAL.
inline constexpr unsigned long kNotifySetFlags = _IOW('!', 4, std::uint64_t);
/// SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP.
inline constexpr std::uint64_t kNotifySyncWakeUp = 1;

}  // namespace cellkeep::sandbox
