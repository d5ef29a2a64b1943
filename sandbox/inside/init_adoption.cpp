// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/init_state.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

namespace cellkeep::sandbox {

namespace {

bool is_worker(const Init& init, pid_t pid) {
    for (const Slot& slot : init.slots) {
        if (slot.state == SlotState::kRunning && slot.pid == pid) {
            return true;
        }
    }
    return false;
}

/// 0 if the process is a child of pid 1 that has not ended. Until pid 1 reaps it, its number is no
/// other's.
int check_child(pid_t pid) {
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) < 0) {
        return errno;
    }
    return ended.si_pid == 0 ? 0 : ESRCH;
}

/// A number that is written to cgroup.procs is of the writer's pid namespace (cgroups(7)).
int enter_cgroup(int procs_fd, pid_t pid) {
    if (procs_fd < 0) {
        return 0;
    }
    std::array<char, 16> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), pid).ptr;
    const auto size = static_cast<std::size_t>(end - text.data());
    return ::write(procs_fd, text.data(), size) < 0 ? errno : 0;
}

/// What a guest has made its number known for: only a process of its own sandbox can be meant.
int adopt(const Init& init, const RequestHeader& header, int& pidfd, SetupStep& step) {
    const pid_t pid = header.forked;
    if (const int error = check_child(pid); error != 0) {
        return error;
    }
    pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) {
        return errno;
    }
    const int procs_fd = header.own_cgroup == 1                ? init.request.fds[0]
                         : header.own_cgroup == kStaysInCgroup ? -1
                                                               : init.child->worker_cgroup_fd;
    const int error = enter_cgroup(procs_fd, pid);
    if (error != 0) {
        // A process that no sweep reaches must not stay.
        step = SetupStep::kWorkerCgroup;
        (void)::kill(pid, SIGKILL);  // Ignored: ESRCH means that it has ended by itself.
        (void)::close(pidfd);        // Ignored: the reaper takes the process.
        pidfd = -1;
    }
    return error;
}

bool is_well_formed(const Init& init, const RequestHeader& header) {
    const std::size_t fds = header.own_cgroup == 1 ? 1 : 0;
    return header.group < kWorkerGroupsMax && header.forked > 1 &&
           header.own_cgroup <= kStaysInCgroup && init.request.fd_count == fds &&
           header.text_bytes == 0 && (fds == 0 || is_cgroup_file(init.request.fds[0], O_WRONLY));
}

}  // namespace

void handle_adoption(Init& init, const RequestHeader& header) noexcept {
    ReplyMessage reply{header.sequence, 0, SetupStep::kAdopt};
    int pidfd = -1;
    Slot* slot = free_slot(init);
    if (!is_well_formed(init, header)) {
        reply.error = EINVAL;
    } else if (init.sweep.pending || init.group_sweeps.groups[header.group].pending) {
        reply.error = EBUSY;
        reply.step = SetupStep::kServe;
    } else if (slot == nullptr) {
        reply.error = EAGAIN;
    } else if (is_worker(init, header.forked)) {
        reply.error = EEXIST;
    } else {
        reply.error = adopt(init, header, pidfd, reply.step);
    }
    if (reply.error == 0) {
        slot->event.worker_id = header.worker_id;
        slot->group = header.group;
        slot->state = SlotState::kRunning;
        slot->pid = header.forked;
        init.group_sweeps.groups[header.group].leader = header.forked;
    }
    reply_with_worker(init, reply, slot, pidfd);
}

}  // namespace cellkeep::sandbox
