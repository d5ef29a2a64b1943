// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/pid1_exit.hpp"

#include <linux/types.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

namespace cellkeep::sandbox {

namespace {

/// linux/pidfd.h of Linux 6.15, as far as it is needed: Debian 12's headers do not have it.
struct PidfdInfo {
    __u64 mask = 0;
    __u64 cgroup_id = 0;
    __u32 pid = 0;
    __u32 group = 0;
    __u32 parent = 0;
    __u32 credentials[8] = {};
    __s32 exit_code = 0;
};
constexpr __u64 kInfoExit = 1U << 3U;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

/// False: this kernel does not have it, or the process was reaped before it was asked for.
bool get_info(const UniqueFd& pidfd, PidfdInfo& info) {
    info.mask = kInfoExit;
    return ::ioctl(pidfd.get(), kGetInfo, &info) == 0;
}

/// POLLHUP of a pidfd tells that the process was reaped (Linux 6.9).
void wait_for_reaper(const UniqueFd& pidfd) {
    pollfd watched{pidfd.get(), 0, 0};
    // Ignored: what is not known then is not told.
    (void)::poll(&watched, 1, static_cast<int>(kReaperPatience.count()));
}

}  // namespace

std::string describe_exit(const UniqueFd& pidfd) {
    PidfdInfo info;
    if (!get_info(pidfd, info)) {
        return {};
    }
    wait_for_reaper(pidfd);
    if (!get_info(pidfd, info) || (info.mask & kInfoExit) == 0) {
        return {};
    }
    if (WIFSIGNALED(info.exit_code)) {
        return "; it was killed by signal " + std::to_string(WTERMSIG(info.exit_code));
    }
    return "; its exit code was " + std::to_string(WEXITSTATUS(info.exit_code));
}

}  // namespace cellkeep::sandbox
