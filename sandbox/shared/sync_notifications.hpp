// SPDX-License-Identifier: Apache-2.0
//
// Has a thread that waits for the answer to its call go on at once, on the same processor, and the
// one who answers wait for the next call (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6). Debian
// 12's <linux/seccomp.h> does not have it. Values.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace cellkeep::sandbox {

/// SECCOMP_IOCTL_NOTIF_SET_FLAGS; an older kernel says EINVAL.
inline constexpr unsigned long kNotifySetFlags = _IOW('!', 4, std::uint64_t);
/// SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP.
inline constexpr std::uint64_t kNotifySync = 1;

}  // namespace cellkeep::sandbox
