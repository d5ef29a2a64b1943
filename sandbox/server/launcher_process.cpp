// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/launcher_process.hpp"

#include "sandbox/shared/messages.hpp"

#include <climits>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

namespace {

constexpr int kFirstSafeFd = 16;  // above every number that the launcher's descriptors get

/// A copy with a high number, so that placing one descriptor cannot overwrite another.
Result<UniqueFd> move_up(int fd) {
    UniqueFd high(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstSafeFd));
    if (!high) {
        return Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
    return high;
}

}  // namespace

Result<std::string> find_launcher(const std::string& launcher) {
    if (!launcher.empty()) {
        return launcher;
    }
    std::array<char, PATH_MAX> buffer{};
    const ssize_t size = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
    if (size < 0) {
        return Error::from_errno(errno, "readlink(/proc/self/exe)");
    }
    const std::string self(buffer.data(), static_cast<std::size_t>(size));
    return self.substr(0, self.rfind('/') + 1) + "cellkeep-sandbox";
}

Result<pid_t> spawn_launcher(
    const std::string& path, const std::string& argument, std::span<const int> fds) {
    std::vector<UniqueFd> high;
    for (const int fd : fds) {
        BOOST_OUTCOME_TRY(auto copy, move_up(fd));
        high.push_back(std::move(copy));
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    int error = ::posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return Error::from_errno(error, "posix_spawn_file_actions_init");
    }
    error = ::posix_spawnattr_init(&attributes);
    if (error != 0) {
        // Ignored: the first failure is the one to report.
        (void)::posix_spawn_file_actions_destroy(&actions);
        return Error::from_errno(error, "posix_spawnattr_init");
    }
    // Ignored: neither fails on a valid set (sigsetops(3)).
    (void)::sigemptyset(&none);
    (void)::sigfillset(&all);
    std::vector<int> steps{
        ::posix_spawnattr_setsigmask(&attributes, &none),
        ::posix_spawnattr_setsigdefault(&attributes, &all),
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF),
        ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0),
        ::posix_spawn_file_actions_adddup2(&actions, 0, 1),
        ::posix_spawn_file_actions_adddup2(&actions, 0, 2),
    };
    int place = kLauncherControlFd;
    for (const UniqueFd& fd : high) {
        steps.push_back(::posix_spawn_file_actions_adddup2(&actions, fd.get(), place++));
    }
    steps.push_back(::posix_spawn_file_actions_addclosefrom_np(&actions, place));
    for (const int step : steps) {
        error = error != 0 ? error : step;
    }
    pid_t pid = -1;
    if (error == 0) {
        std::string name = "cellkeep-sandbox";
        std::string only = argument;
        const std::array<char*, 3> argv{
            name.data(), argument.empty() ? nullptr : only.data(), nullptr};
        const std::array<char*, 1> no_variable{nullptr};
        char* const* env = no_variable.data();
#if defined(CELLKEEP_MUTANTS)
        env = ::environ;  // layer_switch.hpp
#endif
        error = ::posix_spawn(&pid, path.c_str(), &actions, &attributes, argv.data(), env);
    }
    // Ignored: both only free memory.
    (void)::posix_spawn_file_actions_destroy(&actions);
    (void)::posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        return Error::from_errno(error, "exec(" + path + ")")
            .with_hint("install cellkeep-sandbox beside the cellkeep program");
    }
    return pid;
}

Status wait_until_readable(int fd, std::chrono::steady_clock::time_point deadline) {
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd watched{fd, POLLIN, 0};
        // Without patience it still looks.
        const int ready =
            ::poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
        if (ready > 0) {
            return ok();
        }
        if (ready == 0) {
            return Error(ErrorCode::kTimeout, "the sandbox did not start in time");
        }
        if (errno != EINTR) {
            return Error::from_errno(errno, "poll");
        }
    }
}

Result<UniqueFd> open_launcher(pid_t pid) {
    UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    // ESRCH: the server ignores SIGCHLD, and the launcher has ended and been reaped by the kernel.
    if (!handle && errno != ESRCH) {
        const Error problem = Error::from_errno(errno, "pidfd_open");
        // Ignored, both: it may have ended in the meantime; it is not reaped, so the pid is still
        // its own. What it has made ends with it: the far end of its sockets is closed.
        (void)::kill(pid, SIGKILL);
        (void)::waitpid(pid, nullptr, 0);
        return problem;
    }
    return handle;
}

Status kill_and_reap(const UniqueFd& pidfd, std::chrono::milliseconds patience) {
    if (!pidfd) {
        return ok();
    }
    if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) < 0 && errno != ESRCH) {
        return Error::from_errno(errno, "pidfd_send_signal");
    }
    const auto deadline = std::chrono::steady_clock::now() + patience;
    if (const auto ended = wait_until_readable(pidfd.get(), deadline); ended.has_error()) {
        return Error(ErrorCode::kTimeout, "the sandbox's processes did not end in time");
    }
    siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &info, WEXITED) < 0) {
        if (errno == ECHILD) {
            // The server ignores SIGCHLD and the kernel has reaped it, or a zygote's pid 1 does.
            return ok();
        }
        if (errno != EINTR) {
            return Error::from_errno(errno, "waitid");
        }
    }
    return ok();
}

}  // namespace cellkeep::sandbox
