// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/group_sweeps.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace cellkeep::sandbox {

bool is_cgroup_file(int fd, int access) noexcept {
    struct statfs system {};
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) == access &&
           ::fstatfs(fd, &system) == 0 && system.f_type == CGROUP2_SUPER_MAGIC;
}

void begin_group_sweep(GroupSweep& sweep, int events_fd) noexcept {
    if (sweep.events_fd >= 0) {
        (void)::close(sweep.events_fd);  // Ignored: it was only read from.
    }
    sweep.events_fd = events_fd;
    sweep.pending = true;
    sweep.tells = true;
    if (sweep.leader > 0) {
        // Ignored: ESRCH means that no process is left. The group keeps its number for as long
        // as a process is in it.
        (void)::kill(-sweep.leader, SIGKILL);
    }
}

bool is_group_empty(const GroupSweep& sweep) noexcept {
    if (sweep.events_fd < 0) {
        return true;
    }
    std::array<char, 256> text{};
    // At offset 0 the kernel makes the text anew, and tells of the next change from here on.
    const ssize_t got = ::pread(sweep.events_fd, text.data(), text.size(), 0);
    return got <= 0 ||
           std::string_view(text.data(), static_cast<std::size_t>(got)).find("populated 0") !=
               std::string_view::npos;
}

void end_group_sweep(GroupSweep& sweep) noexcept {
    if (sweep.events_fd >= 0) {
        (void)::close(sweep.events_fd);  // Ignored: it was only read from.
    }
    sweep.events_fd = -1;
    sweep.leader = 0;  // Its number may be somebody else's from now on.
    sweep.pending = false;
}

}  // namespace cellkeep::sandbox
