// SPDX-License-Identifier: Apache-2.0
//
// The ioctls that the filter lets pass. Values.
#pragma once

#include "sandbox/shared/procmap_query.hpp"
#include "sandbox/shared/sync_notifications.hpp"

#include <linux/seccomp.h>
#include <sys/ioctl.h>

#include <array>

namespace cellkeep::sandbox {

/// Compared over all 64 bits, so a command with high bits set is none of these (CVE-2019-10063).
inline constexpr std::array kIoctlCommands{
    static_cast<unsigned long>(TCGETS),
    static_cast<unsigned long>(TIOCGWINSZ),
    static_cast<unsigned long>(TIOCGPGRP),
    // Of a terminal that a worker was given. Not those that type into one, change its discipline,
    // take the console, or make another one.
    static_cast<unsigned long>(TCSETS),
    static_cast<unsigned long>(TCSETSW),
    static_cast<unsigned long>(TCSETSF),
    static_cast<unsigned long>(TCFLSH),
    static_cast<unsigned long>(TCXONC),
    static_cast<unsigned long>(TCSBRK),
    static_cast<unsigned long>(TCSBRKP),
    static_cast<unsigned long>(TIOCSWINSZ),
    static_cast<unsigned long>(TIOCSPGRP),
    static_cast<unsigned long>(TIOCGSID),
    static_cast<unsigned long>(TIOCSCTTY),
    static_cast<unsigned long>(TIOCNOTTY),
    static_cast<unsigned long>(TIOCOUTQ),
    static_cast<unsigned long>(FIONREAD),
    static_cast<unsigned long>(FIONBIO),
    static_cast<unsigned long>(FIOCLEX),
    static_cast<unsigned long>(FIONCLEX),
    static_cast<unsigned long>(FIOASYNC),
    // What /proc/PID/maps lists as text.
    kProcmapQuery,
    // Pid 1's, on a descriptor that only it has.
    static_cast<unsigned long>(SECCOMP_IOCTL_NOTIF_RECV),
    static_cast<unsigned long>(SECCOMP_IOCTL_NOTIF_SEND),
    kNotifySetFlags};

}  // namespace cellkeep::sandbox
