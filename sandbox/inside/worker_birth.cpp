// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/worker_birth.hpp"

#include "sandbox/inside/lockdown.hpp"
#include "sandbox/inside/signal_table.hpp"
#include "sandbox/shared/layer_switch.hpp"
#include "sandbox/shared/messages.hpp"

#include <climits>

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace cellkeep::sandbox {

namespace {

[[noreturn]] void fail_worker(int failure_fd, SetupStep step, int error) {
    const WorkerFailure failure{step, error};
    // Ignored: the reader then sees a failed exec without a reason.
    (void)!::write(failure_fd, &failure, sizeof(failure));
    ::_exit(127);
}

/// Puts the received descriptors at `place` and up and failure_fd above them, and closes all else.
/// 0, or an errno; EBADFD if the table is not what it has to be then.
int arrange_worker_table(std::span<const int> received, int place, int& failure_fd) {
    // The last number used here is below every received one: 0 to 4 were taken when they came.
    const int last = place + static_cast<int>(received.size());
    for (const int fd : received) {
        if (::dup2(fd, place++) < 0) {
            return errno;
        }
    }
    // Without an input of its own fd 0 is pid 1's /dev/null already; dup2 of it onto itself would
    // keep close-on-exec.
    if (::fcntl(STDIN_FILENO, F_SETFD, 0) < 0) {
        return errno;
    }
    // Lives until the exec succeeds. A number that it happens to have already is its own.
    const int moved = failure_fd == last ? last : ::dup3(failure_fd, last, O_CLOEXEC);
    if (moved < 0) {
        return errno;
    }
    failure_fd = moved;
    if (!layer_removed("worker_descriptors") &&
        ::close_range(static_cast<unsigned>(last) + 1, ~0U, 0) < 0) {
        return errno;
    }
    for (int fd = 0; fd <= last; ++fd) {
        if (::fcntl(fd, F_GETFD) != (fd == last ? FD_CLOEXEC : 0)) {
            return EBADFD;
        }
    }
    // The lowest free number tells that nothing below it is missing and that it is closed itself.
    const int free_fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (free_fd < 0) {
        return errno;
    }
    (void)::close(free_fd);  // Ignored: it was a copy of fd 0.
    return free_fd == last + 1 || layer_removed("worker_descriptors") ? 0 : EBADFD;
}

/// chdir(2), and a check that the directory is one of this root (CVE-2024-21626): getcwd(2) begins
/// with "(unreachable)" for any other.
int enter_directory(const char* directory) {
    static std::array<char, PATH_MAX> here{};
    if (::chdir(directory) < 0) {
        return errno;
    }
    if (::syscall(SYS_getcwd, here.data(), here.size()) < 0) {
        return errno;
    }
    return here[0] == '/' ? 0 : EXDEV;
}

/// Without an exec: what that would have done is done here.
[[noreturn]] void go_on_as_program(const Newborn& newborn, const Start& start) {
    // Inherited from pid 1, which is undumpable: a process may not read its own /proc files then.
    if (::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0) {
        fail_worker(newborn.failure_fd, SetupStep::kWorkerSession, errno);
    }
    restore_signals();
    (void)::close(newborn.failure_fd);  // Ignored: its end of file says that all is well.
    newborn.entry(start.environment.data());
    ::_exit(127);
}

}  // namespace

void become_worker(Newborn newborn, const Start& start) noexcept {
    // "0" is the writer (cgroups(7)). Before anything of the guest's runs.
    if (newborn.cgroup_fd >= 0 && ::write(newborn.cgroup_fd, "0", 1) != 1) {
        fail_worker(newborn.failure_fd, SetupStep::kWorkerCgroup, errno);
    }
    sigset_t none;
    if (::sigemptyset(&none) < 0 || ::pthread_sigmask(SIG_SETMASK, &none, nullptr) != 0 ||
        (!layer_removed("worker_session") && ::setsid() < 0) ||
        ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0) {
        fail_worker(newborn.failure_fd, SetupStep::kWorkerSession, errno);
    }
    const int place = newborn.own_input ? STDIN_FILENO : STDOUT_FILENO;
    if (const int error = arrange_worker_table(newborn.received, place, newborn.failure_fd);
        error != 0) {
        fail_worker(newborn.failure_fd, SetupStep::kWorkerDescriptors, error);
    }
    if (newborn.own_terminal && ::ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0) {
        fail_worker(newborn.failure_fd, SetupStep::kWorkerSession, errno);
    }
    if (const int error =
            layer_removed("rlimits") ? 0 : lower_rlimit(RLIMIT_NOFILE, newborn.open_files);
        error != 0) {
        fail_worker(newborn.failure_fd, SetupStep::kWorkerLimits, error);
    }
    if (const int error = enter_directory(start.directory); error != 0) {
        fail_worker(newborn.failure_fd, SetupStep::kWorkerDirectory, error);
    }
    if (start.warm) {
        go_on_as_program(newborn, start);
    }
    (void)::execve(start.arguments[0], start.arguments.data(), start.environment.data());
    fail_worker(newborn.failure_fd, SetupStep::kExec, errno);
}

}  // namespace cellkeep::sandbox
