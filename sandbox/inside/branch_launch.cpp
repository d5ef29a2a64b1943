// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/branch_launch.hpp"

#include "sandbox/policy/policy.hpp"
#include "sandbox/shared/messages.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace cellkeep::sandbox {

namespace {

constexpr const char* kUserNamespaces = "sys/user/max_user_namespaces";
/// A bound below this one is a sandbox's; while room is kept it is this one. Each branch, and each
/// branch of a branch, takes two.
constexpr long kRoom = 65536;
constexpr std::string_view kRoomText = "65536";

/// In a user namespace above the guests: its bound is wider until done ends. Says so, or why not.
[[noreturn]] void keep_room(int user_fd, int proc_fd, int ready, int done) {
    char before[32]{};
    int file = -1;
    int error = ::setns(user_fd, CLONE_NEWUSER) < 0 ? errno : 0;
    if (error == 0) {
        file = ::openat(proc_fd, kUserNamespaces, O_RDWR | O_CLOEXEC);
        error = file < 0 || ::pread(file, before, sizeof(before) - 1, 0) < 0 ? errno : 0;
    }
    const bool narrow = error == 0 && std::strtol(before, nullptr, 10) < kRoom;
    if (narrow) {
        error = ::pwrite(file, kRoomText.data(), kRoomText.size(), 0) < 0 ? errno : 0;
    }
    const auto answer = static_cast<char>(error);
    if (::write(ready, &answer, 1) != 1) {
        error = EPIPE;
    }
    char end = 0;
    while (error == 0 && ::read(done, &end, 1) < 0 && errno == EINTR) {
    }
    const std::size_t size = std::strlen(before);
    if (narrow && ::pwrite(file, before, size, 0) != static_cast<ssize_t>(size)) {
        ::_exit(1);
    }
    ::_exit(error == 0 ? 0 : 1);
}

bool is_own_namespace(int user_fd, int proc_fd) {
    struct stat own {};
    struct stat that {};
    return ::fstatat(proc_fd, "self/ns/user", &own, 0) < 0 || ::fstat(user_fd, &that) < 0 ||
           own.st_ino == that.st_ino;
}

/// guest_fd: the user namespace of the parent's guests, which itself has no bound.
int make_room(int guest_fd, int proc_fd, RoomKeepers& keepers) {
    int ready[2];
    int done[2];
    if (::pipe2(ready, O_CLOEXEC) < 0 || ::pipe2(done, O_CLOEXEC) < 0) {
        return errno;
    }
    int user_fd = ::ioctl(guest_fd, NS_GET_PARENT);
    while (user_fd >= 0 && !is_own_namespace(user_fd, proc_fd)) {
        if (keepers.count == keepers.pids.size()) {
            return EUSERS;
        }
        const pid_t pid = ::fork();
        if (pid < 0) {
            return errno;
        }
        if (pid == 0) {
            (void)::close(done[1]);  // Ignored: only its end of file matters.
            keep_room(user_fd, proc_fd, ready[1], done[0]);
        }
        keepers.pids[keepers.count++] = pid;
        const int above = ::ioctl(user_fd, NS_GET_PARENT);
        (void)::close(user_fd);  // Ignored: it was only looked at.
        user_fd = above;
    }
    (void)::close(user_fd);  // Ignored: perhaps there is none.
    (void)::close(done[0]);
    (void)::close(ready[1]);
    for (std::size_t i = 0; i < keepers.count; ++i) {
        char answer = EPIPE;
        if (::read(ready[0], &answer, 1) != 1 || answer != 0) {
            return answer;
        }
    }
    (void)::close(ready[0]);
    keepers.done = done[1];
    return 0;
}

}  // namespace

int enter_parent(ChildState& state, RoomKeepers& keepers, SetupStep& step) {
    const int pid_fd = kLauncherCgroupFd + static_cast<int>(state.plan->cgroup_procs.size()) +
                       (state.plan->worker_procs.empty() ? 0 : 1);
    const int guest_fd = pid_fd + 1;
    step = SetupStep::kOpenRoom;
    state.proc_fd = ::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int outer_fd = ::ioctl(kLauncherMountFd, NS_GET_USERNS);
    if (state.proc_fd < 0 || outer_fd < 0) {
        return errno;
    }
    if (const int error = make_room(guest_fd, state.proc_fd, keepers); error != 0) {
        return error;
    }
    step = SetupStep::kEnterParent;
    if (::geteuid() == 0 && ::setgroups(0, nullptr) < 0 && errno != EPERM) {
        return errno;
    }
    // The outer user namespace owns the next two, and has the guest's beneath it.
    if (::setns(outer_fd, CLONE_NEWUSER) < 0 || ::setns(pid_fd, CLONE_NEWPID) < 0 ||
        ::setns(kLauncherMountFd, CLONE_NEWNS) < 0) {
        return errno;
    }
    // Who makes the branch's user namespaces has to be the guest's user (leaving.hpp).
    if (::setresgid(kGuestGid, kGuestGid, kGuestGid) < 0 ||
        ::setresuid(kGuestUid, kGuestUid, kGuestUid) < 0 ||
        ::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0 || ::setns(guest_fd, CLONE_NEWUSER) < 0 ||
        ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0) {
        return errno;
    }
    (void)::close(outer_fd);  // Ignored: it was only entered.
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
    (void)::close(fd);  // Ignored: it was only read.
    const char* const line = got > 0 ? std::strstr(text, "Pid:") : nullptr;
    const long number = line == nullptr ? 0 : std::strtol(line + 4, nullptr, 10);
    return number > 0 ? static_cast<pid_t>(number) : -ESRCH;
}

int wait_for_branch(const RoomKeepers& keepers, pid_t child) {
    int status = 1;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    (void)::close(keepers.done);  // Ignored: pid 1 may hold it a little longer.
    for (std::size_t i = 0; i < keepers.count; ++i) {
        while (::waitpid(keepers.pids[i], nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace cellkeep::sandbox
