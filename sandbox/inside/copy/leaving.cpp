// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/leaving.hpp"

#include "sandbox/inside/lockdown.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace cellkeep::sandbox {

namespace {

/// The steps behind the namespaces.
constexpr auto kDropStep = static_cast<std::uint32_t>(kBranchNamespaceCount);
constexpr std::uint32_t kForkStep = kDropStep + 1;
/// Pid 1 of the branch becomes the parent as soon as the process in between has ended.
constexpr int kParentLooks = 5000;

pid_t plain_fork() {
    // The process has one thread, and the C library's books are right already (sleeping_copy.cpp).
    return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
}

bool await_word(int gate) {
    char word = 0;
    ssize_t got = -1;
    do {
        got = ::recv(gate, &word, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

int enter_all(std::span<const int> namespaces, std::uint32_t& step) {
    const int dumpable = ::prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L);
    for (step = 0; step < namespaces.size(); ++step) {
        if (::setns(namespaces[step], kBranchNamespaces[step].flag) < 0) {
            return errno;
        }
    }
    step = kDropStep;
    if (const int error = drop_capabilities(); error != 0) {
        return error;
    }
    // The changes of credentials took it away (prctl(2)), and with it the process's own /proc
    // files.
    return dumpable == 1 && ::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0 ? errno : 0;
}

void await_parent() {
    for (int i = 0; ::getppid() != 1; ++i) {
        if (i == kParentLooks) {
            ::_exit(0);
        }
        (void)::poll(nullptr, 0, 1);  // Ignored: it only waits.
    }
}

/// In the process between: it is in the branch, and so its child is pid 1's when it has ended.
[[noreturn]] void hand_over(int out, pid_t forked) {
    const int result = forked < 0 ? -errno : forked;
    // Ignored: the reader then sees that there is none.
    (void)!::write(out, &result, sizeof(result));
    ::_exit(0);
}

}  // namespace

void leave_for_branch(int gate, std::span<const int> namespaces) noexcept {
    LeaveReport report;
    std::array<int, 2> numbers{};
    if (!await_word(gate) || ::pipe2(numbers.data(), O_CLOEXEC) < 0) {
        ::_exit(0);
    }
    report.error = enter_all(namespaces, report.step);
    const pid_t between = report.error == 0 ? plain_fork() : -1;
    if (between == 0) {
        const pid_t forked = plain_fork();
        if (forked != 0) {
            hand_over(numbers[1], forked);
        }
        (void)::close(numbers[0]);  // Ignored, here and below: nothing of them is needed any more.
        (void)::close(numbers[1]);
        (void)::close(gate);
        await_parent();
        return;
    }
    if (report.error == 0) {
        report.step = kForkStep;
        report.error = between < 0 ? errno : 0;
    }
    (void)::close(numbers[1]);
    int result = -ECHILD;
    if (between > 0) {
        while (::read(numbers[0], &result, sizeof(result)) < 0 && errno == EINTR) {
        }
        while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
        }
        report.error = result < 0 ? -result : 0;
        report.forked = result < 0 ? 0 : result;
    }
    // Ignored: the server sees the gate's end of file.
    (void)::send(gate, &report, sizeof(report), MSG_NOSIGNAL);
    ::_exit(0);
}

}  // namespace cellkeep::sandbox
