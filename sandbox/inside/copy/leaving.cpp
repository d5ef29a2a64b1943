// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/leaving.hpp"

#include "sandbox/inside/lockdown.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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

bool await_word(int gate) {
    char word = 0;
    ssize_t got = -1;
    do {
        got = ::recv(gate, &word, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

int enter_all(std::span<const int> namespaces, std::uint32_t& step) {
    for (step = 0; step < namespaces.size(); ++step) {
        if (::setns(namespaces[step], kBranchNamespaces[step].flag) < 0) {
            return errno;
        }
    }
    step = kDropStep;
    return drop_capabilities();
}

/// The changes of credentials take away what prctl(2) calls dumpable, and with it the process's own
/// /proc files. It is the memory's, and so the copy's, which has lent it.
int enter_readable(std::span<const int> namespaces, std::uint32_t& step) {
    const bool was_dumpable = ::prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L) == 1;
    const int error = enter_all(namespaces, step);
    const bool is_lost = was_dumpable && ::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0;
    return error == 0 && is_lost ? errno : error;
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

/// Returns the number of the process between, which has ended or nearly so, 0 in its fork, an errno
/// below 0.
[[gnu::noinline]] long fork_between(int out, const ForkInside& inside) {
    const long between = cellkeep_lend_memory(0);
    if (between == 0) {
        const pid_t forked =
            clone_process(inside.notes, {.sibling = false, .renumber = inside.renumber});
        if (forked != 0) {
            hand_over(out, forked);
        }
    }
    return between;
}

/// What the process between has said, when it has ended.
int await_between(int in, pid_t between) {
    int result = -ECHILD;
    while (::read(in, &result, sizeof(result)) < 0 && errno == EINTR) {
    }
    while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
    }
    return result;
}

}  // namespace

void leave_for_branch(
    int gate, std::span<const int> namespaces, const ForkInside& inside) noexcept {
    LeaveReport report;
    std::array<int, 2> numbers{};
    if (!await_word(gate) || ::pipe2(numbers.data(), O_CLOEXEC) < 0) {
        ::_exit(0);
    }
    report.error = enter_readable(namespaces, report.step);
    if (report.error == 0) {
        report.step = kForkStep;
        const long between = fork_between(numbers[1], inside);
        if (between == 0) {
            (void)::close(numbers[0]);  // Ignored, here and below: nothing of them is needed.
            (void)::close(numbers[1]);
            (void)::close(gate);
            await_parent();
            return;
        }
        (void)::close(numbers[1]);
        const long result =
            between < 0 ? between : await_between(numbers[0], static_cast<pid_t>(between));
        report.error = result < 0 ? static_cast<int>(-result) : 0;
        report.forked = result < 0 ? 0 : static_cast<int>(result);
    }
    // Ignored: the server sees the gate's end of file.
    (void)::send(gate, &report, sizeof(report), MSG_NOSIGNAL);
    ::_exit(0);
}

}  // namespace cellkeep::sandbox
