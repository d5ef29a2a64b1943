// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/branch/branch_launch.hpp"

#include "sandbox/inside/branch/room_keeper.hpp"
#include "sandbox/inside/init_socket.hpp"
#include "sandbox/inside/launch_request.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/shared/messages.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

/// A /proc of its own, attached nowhere, where this process may mount one. A /proc keeps what each
/// network namespace has beneath /proc/sys in one list for all, which every look there goes
/// through: with some hundred sandboxes on a host that is a tenth of a branch's launch.
int open_proc() {
    const int context = ::fsopen("proc", FSOPEN_CLOEXEC);
    int fd = -1;
    if (context >= 0) {
        if (::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0) {
            fd = ::fsmount(
                context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        }
        (void)::close(context);  // Ignored: nothing was written through it.
    }
    return fd >= 0 ? fd : ::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/// User namespaces from that of the parent's guests upwards, without it and the server's own.
struct Ancestors {
    std::array<int, kUserNamespacesAbove> fds{};
    std::size_t count = 0;
};

bool is_own_namespace(int user_fd, int proc_fd) {
    struct stat own {};
    struct stat that {};
    return ::fstatat(proc_fd, "self/ns/user", &own, 0) < 0 || ::fstat(user_fd, &that) < 0 ||
           own.st_ino == that.st_ino;
}

int find_ancestors(int proc_fd, Ancestors& above) {
    int user_fd = ::ioctl(kParentUserFd, NS_GET_PARENT);
    while (user_fd >= 0 && !is_own_namespace(user_fd, proc_fd)) {
        if (above.count == above.fds.size()) {
            return EUSERS;
        }
        above.fds[above.count++] = user_fd;
        user_fd = ::ioctl(user_fd, NS_GET_PARENT);
    }
    if (user_fd < 0) {
        return errno;
    }
    (void)::close(user_fd);  // Ignored, here and below: it was only looked at.
    return above.count == 0 ? ESRCH : 0;
}

/// From the topmost down to the one that owns the other namespaces of the parent's. The guests' own
/// has no bound.
int enter_ancestors(int proc_fd, const Ancestors& above) {
    int keeper = -1;
    for (std::size_t i = above.count; i > 0; --i) {
        const int user_fd = above.fds[i - 1];
        if (::setns(user_fd, CLONE_NEWUSER) < 0) {
            return errno;
        }
        (void)::close(user_fd);
        int error = keeper < 0 ? fork_room_keeper(keeper) : 0;
        if (error != 0 || (error = give_bound(proc_fd, keeper)) != 0) {
            return error;
        }
    }
    SetupMessage message;
    message.kind = SetupMessageKind::kRoom;
    const int error = send_setup_message(kLauncherControlFd, message, keeper);
    (void)::close(keeper);
    return error;
}

/// Its forks are in the pid namespace, and it is not: no guest sees it.
int enter_parent() {
    if (::setns(kParentPidFd, CLONE_NEWPID) < 0 || ::setns(kParentMountFd, CLONE_NEWNS) < 0) {
        return errno;
    }
    // Who makes the branch's user namespaces has to be the guest's user (leaving.hpp).
    if (::setresgid(kGuestGid, kGuestGid, kGuestGid) < 0 ||
        ::setresuid(kGuestUid, kGuestUid, kGuestUid) < 0 ||
        ::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0 || ::setns(kParentUserFd, CLONE_NEWUSER) < 0 ||
        ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0) {
        return errno;
    }
    for (const int fd : {kParentMountFd, kParentPidFd, kParentUserFd}) {
        (void)::close(fd);
    }
    return 0;
}

/// Its forks are in the parent's pid namespace, which cannot end as long as one of them is to be
/// reaped: the kernel does that.
int let_kernel_reap(bool wanted) {
    struct sigaction children {};
    children.sa_handler = SIG_DFL;
    children.sa_flags = wanted ? SA_NOCLDWAIT : 0;
    return ::sigaction(SIGCHLD, &children, nullptr) < 0 ? errno : 0;
}

int get_ready(int& proc_fd, SetupStep& step) {
    step = SetupStep::kDescriptors;
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0 ||
        ::close_range(kLauncherControlFd, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
        return errno;
    }
    step = SetupStep::kOpenRoom;
    proc_fd = open_proc();
    if (proc_fd < 0) {
        return errno;
    }
    Ancestors above;
    if (const int error = find_ancestors(proc_fd, above); error != 0) {
        return error;
    }
    step = SetupStep::kEnterParent;
    if (::geteuid() == 0 && ::setgroups(0, nullptr) < 0 && errno != EPERM) {
        return errno;
    }
    int error = enter_ancestors(proc_fd, above);
    if (error == 0) {
        error = enter_parent();
    }
    return error != 0 ? error : let_kernel_reap(true);
}

}  // namespace

int launch_branches() {
    SetupMessage ready;
    ready.report.outcome.fill(kControlNotReached);
    int proc_fd = -1;
    ready.error = get_ready(proc_fd, ready.step);
    ready.kind = ready.error == 0 ? SetupMessageKind::kReady : SetupMessageKind::kFailed;
    if (send_setup_message(kLauncherControlFd, ready, -1) != 0 || ready.error != 0) {
        return 1;
    }
    LaunchDescriptors received;
    while (receive_launch(kLauncherControlFd, received)) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            (void)let_kernel_reap(false);  // Ignored: it cannot fail where it has not before.
            received.fds[received.count++] = proc_fd;
            become_launcher(received, nullptr);
        }
        end_request(received, pid < 0 ? errno : 0);
    }
    // The keeper puts back what is open, and then ends. Only this process can reap it.
    while (::wait(nullptr) > 0 || errno == EINTR) {
    }
    return 0;
}

pid_t host_pid(int proc_fd, int pidfd) {
    char path[64];
    (void)std::snprintf(path, sizeof(path), "self/fdinfo/%d", pidfd);
    const int fd = ::openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    char text[512]{};
    const ssize_t got = ::read(fd, text, sizeof(text) - 1);
    (void)::close(fd);
    const char* const line = got > 0 ? std::strstr(text, "Pid:") : nullptr;
    const long number = line == nullptr ? 0 : std::strtol(line + 4, nullptr, 10);
    return number > 0 ? static_cast<pid_t>(number) : -ESRCH;
}

}  // namespace cellkeep::sandbox
