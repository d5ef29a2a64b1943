// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/sleeping_copy.hpp"

#include "sandbox/inside/copy/leaving.hpp"
#include "sandbox/inside/copy/parked_threads.hpp"
#include "sandbox/inside/copy/process_clone.hpp"
#include "sandbox/inside/copy/ready_fork.hpp"
#include "sandbox/inside/copy/unshared_descriptors.hpp"
#include "sandbox/shared/sleep_messages.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace cellkeep::sandbox {

namespace {

constexpr int kCopyFailed = 70;

/// A fork whose parent is this process's. Returns its number, 0 in it, -1 and errno.
pid_t clone_sibling(bool renumber) {
    ThreadNotes notes;
    if (const int error = note_own_thread(notes); error != 0) {
        errno = error;
        return -1;
    }
    return clone_process(notes, {.sibling = true, .renumber = renumber});
}

/// The same of a process with other threads: a fork of a fork, whose parent in between ends, so
/// that pid 1 gets it. Returns the fork's number, 0 in it, -1 and errno.
pid_t fork_orphan() {
    std::array<int, 2> report{};
    if (::pipe2(report.data(), O_CLOEXEC) < 0) {
        return -1;
    }
    const pid_t between = ::fork();
    if (between == 0) {
        const pid_t copy = ::fork();
        if (copy == 0) {
            (void)::close(report[0]);  // Ignored: nothing is in them that is not written yet.
            (void)::close(report[1]);
            return 0;
        }
        const int result = copy < 0 ? -errno : copy;
        // Ignored: the reader then sees that there is none.
        (void)!::write(report[1], &result, sizeof(result));
        ::_exit(0);
    }
    int result = between < 0 ? -errno : -ECHILD;
    (void)::close(report[1]);  // Ignored: only its end of file matters.
    if (between > 0) {
        while (::read(report[0], &result, sizeof(result)) < 0 && errno == EINTR) {
        }
        // Once it has ended the fork is pid 1's.
        while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    (void)::close(report[0]);  // Ignored: it was only read from.
    if (result < 0) {
        errno = -result;
        return -1;
    }
    return result;
}

/// A process session of its own, and nothing of the running process's channels; their numbers stay
/// taken. Then tells the server, which counts on nothing before.
void lie_down(const CopyOrder& order) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    // No parent death signal: the parent may be the process in between, which ends.
    if (null < 0 || ::setsid() < 0) {
        ::_exit(kCopyFailed);
    }
    for (const ChannelDescriptor& channel : order.channels) {
        if (::dup3(null, channel.fd, O_CLOEXEC) < 0) {
            ::_exit(kCopyFailed);
        }
    }
    (void)::close(null);  // Ignored: it was never written to.
    const WakeReply asleep{kAsleepSequence, ::getpid()};
    // Ignored: the next wait sees that the server is gone.
    (void)::send(order.socket, &asleep, sizeof(asleep), MSG_NOSIGNAL);
}

struct Wake {
    WakeRequest request;
    std::array<int, kBranchWakeFds> fds{};
    std::size_t fd_count = 0;
};

std::size_t descriptors_of(WakeKind kind) {
    return kind == WakeKind::kGoOn ? kWakeFds : kind == WakeKind::kBranch ? kBranchWakeFds : 0;
}

bool carries(const cmsghdr* rights, std::size_t count) {
    return count == 0 ? rights == nullptr
                      : rights != nullptr && rights->cmsg_level == SOL_SOCKET &&
                            rights->cmsg_type == SCM_RIGHTS &&
                            rights->cmsg_len == CMSG_LEN(sizeof(int) * count);
}

/// Waits for the next request. Ends the process when the other end has let go of it.
Wake await_wake(int socket) {
    Wake wake;
    iovec part{&wake.request, sizeof(wake.request)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kBranchWakeFds)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = -1;
    do {
        got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    const cmsghdr* rights = CMSG_FIRSTHDR(&message);
    wake.fd_count = descriptors_of(wake.request.kind);
    const bool whole = got == static_cast<ssize_t>(sizeof(wake.request)) &&
                       (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
                       carries(rights, wake.fd_count);
    if (!whole) {
        ::_exit(got == 0 ? 0 : kCopyFailed);
    }
    if (wake.fd_count > 0) {
        std::memcpy(wake.fds.data(), CMSG_DATA(rights), sizeof(int) * wake.fd_count);
    }
    return wake;
}

/// forked: an errno below 0.
void tell_server(const CopyOrder& order, const Wake& wake, pid_t forked) {
    const WakeReply reply{wake.request.sequence, forked};
    // Ignored: the next wait sees that the server is gone.
    (void)::send(order.socket, &reply, sizeof(reply), MSG_NOSIGNAL);
}

/// A fork that is in the branch, made by one that only leaves: that has the copy's memory, and so
/// the copy is still until it has ended. Returns the number of that one, which the server knows
/// then, 0 in the branch, an errno below 0.
[[gnu::noinline]] long fork_into_branch(
    const CopyOrder& order, const Wake& wake, const ForkInside& inside) {
    const std::span<const int> received = std::span(wake.fds).first(wake.fd_count);
    const long leaving = cellkeep_lend_memory(CLONE_PARENT);
    if (leaving == 0) {
        tell_server(order, wake, ::getpid());
        leave_for_branch(received[kWakeFds], received.subspan(kWakeFds + 1), inside);
    }
    return leaving;
}

/// What the request asks for. Returns 0 in the new process, its number here, an errno below 0.
long fork_for(const CopyOrder& order, const Wake& wake, ReadyFork& ready) {
    const WakeKind kind = wake.request.kind;
    if (kind == WakeKind::kLetGo || kind == WakeKind::kPrepare) {
        end_ready_fork(ready);
    }
    if (kind == WakeKind::kLetGo) {
        return ::getpid();
    }
    const bool renumber = order.threads != CopyOrder::Threads::kCarry;
    ThreadNotes notes;
    if (const int error = note_own_thread(notes); error != 0) {
        return -error;
    }
    if (kind == WakeKind::kPrepare) {
        return make_ready_fork(ready, notes, renumber, order.socket);
    }
    if (kind == WakeKind::kBranch) {
        return fork_into_branch(order, wake, {notes, renumber});
    }
    if (ready.socket >= 0) {
        const std::span<const int> received = std::span(wake.fds).first(wake.fd_count);
        const auto message = std::as_bytes(std::span(&wake.request, 1));
        if (const pid_t used = use_ready_fork(ready, message, received); used > 0) {
            return used;
        }
    }
    const pid_t pid = clone_process(notes, {.sibling = true, .renumber = renumber});
    return pid < 0 ? -errno : pid;
}

/// In the fork of a copy: a process session of its own, and the new channels in their places.
void take_channels(const CopyOrder& order, const Wake& wake) {
    if (::setsid() < 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0) {
        ::_exit(kCopyFailed);
    }
    for (const ChannelDescriptor& channel : order.channels) {
        const int fd = wake.fds[static_cast<std::size_t>(channel.end)];
        if (::dup3(fd, channel.fd, channel.close_on_exec ? O_CLOEXEC : 0) < 0) {
            ::_exit(kCopyFailed);
        }
    }
}

/// Then waits until the server speaks on the link. Before that the process that was left may live,
/// with which it shares its open files.
void get_up(const CopyOrder& order, const Wake& wake) {
    const std::span<const int> received = std::span(wake.fds).first(wake.fd_count);
    const int link = wake.fds[static_cast<std::size_t>(ChannelEnd::kLink)];
    pollfd watched{link, POLLIN, 0};
    while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
    }
    char first = 0;
    if (::recv(link, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1) {
        ::_exit(0);  // The server has changed its mind.
    }
    for (const int fd : received) {
        (void)::close(fd);  // Ignored: it is in its place, or was.
    }
    (void)::close(order.socket);  // Ignored: the copy has its own.
    const bool is_branch = wake.request.kind == WakeKind::kBranch;
    if (is_branch && order.threads != CopyOrder::Threads::kDrop) {
        rebind_listeners();  // Without its thread nobody would accept.
    }
    if (!is_branch) {
        for (const FilePosition& file : order.files) {
            // Ignored: a file that cannot be positioned has no position to lose.
            (void)::lseek(file.fd, file.offset, SEEK_SET);
        }
    }
}

/// In the fork of a copy that carries threads, when all else is the process's own.
void go_on_with_threads() {
    int error = unshare_descriptors();
    if (error == 0) {
        error = revive_threads();
    }
    if (error != 0) {
        constexpr std::string_view kSaid =
            "cellkeep kernel: the threads of a checkpoint cannot go on\n";
        // Ignored: the server sees the end of the process anyway.
        (void)!::write(STDERR_FILENO, kSaid.data(), kSaid.size());
        ::_exit(kCopyFailed);
    }
}

/// The life of a process that goes on, up to what it was copied from.
CopyOutcome go_on(const CopyOrder& order, const Wake& wake) {
    CopyOutcome outcome;
    outcome.where = CopyOutcome::Where::kWoken;
    outcome.reseed = wake.request.reseed != 0;
    outcome.branch = wake.request.kind == WakeKind::kBranch;
    const bool carries_threads = order.threads == CopyOrder::Threads::kCarry;
    take_channels(order, wake);
    if (order.beginning.begin != nullptr && !outcome.branch && !carries_threads) {
        order.beginning.begin(order.beginning.context, outcome.reseed);
        outcome.begun = true;
    }
    get_up(order, wake);
    if (carries_threads) {
        go_on_with_threads();
    }
    return outcome;
}

/// Once in a copy that has branches.
void settle_once(const CopyOrder& order, bool& settled) {
    if (!settled && order.beginning.settle != nullptr &&
        order.threads == CopyOrder::Threads::kNone) {
        order.beginning.settle(order.beginning.context);
    }
    settled = true;
}

/// The life of a copy. Returns in each fork of it.
CopyOutcome sleep_and_fork(const CopyOrder& order) {
    lie_down(order);
    ReadyFork ready;
    bool settled = false;
    while (true) {
        const Wake wake = await_wake(order.socket);
        const WakeKind kind = wake.request.kind;
        if (kind == WakeKind::kBranch) {
            settle_once(order, settled);
        }
        const long forked = fork_for(order, wake, ready);
        if (forked == 0) {
            forget_ready_fork(ready);
            return go_on(order, kind == WakeKind::kPrepare ? await_wake(order.socket) : wake);
        }
        for (const int fd : std::span(wake.fds).first(wake.fd_count)) {
            (void)::close(fd);  // Ignored: the fork has its own.
        }
        // Only now, so that a server that has its answer finds no channel here. One that leaves for
        // a branch has told it already.
        if (forked < 0 || kind != WakeKind::kBranch) {
            tell_server(order, wake, static_cast<pid_t>(forked));
        }
    }
}

/// A copy of the process whose other threads stand still. They do until the copy has descriptors of
/// its own, which it says.
pid_t clone_with_threads(const CopyOrder& order, CopyOutcome& outcome) {
    std::array<int, 2> report{};
    if (::pipe2(report.data(), O_CLOEXEC) < 0) {
        outcome.error = errno;
        return -1;
    }
    const Parked parked = park_threads();
    outcome.error = parked.error;
    outcome.thread = parked.thread;
    const pid_t pid = parked.error == 0 ? clone_sibling(false) : -1;
    if (pid == 0) {
        (void)::close(report[0]);  // Ignored, here and below: the other process has its own.
        const int error = unshare_descriptors();
        (void)!::write(report[1], &error, sizeof(error));
        (void)::close(report[1]);
        if (error != 0) {
            ::_exit(kCopyFailed);
        }
        outcome = sleep_and_fork(order);
        return 0;
    }
    if (parked.error == 0) {
        outcome.error = pid < 0 ? errno : ECHILD;
    }
    (void)::close(report[1]);
    if (pid > 0) {
        while (::read(report[0], &outcome.error, sizeof(outcome.error)) < 0 && errno == EINTR) {
        }
    }
    unpark_threads();
    (void)::close(report[0]);
    return outcome.error == 0 ? pid : -1;
}

pid_t make_copy(const CopyOrder& order, CopyOutcome& outcome) {
    if (order.threads == CopyOrder::Threads::kCarry) {
        return clone_with_threads(order, outcome);
    }
    const bool drops = order.threads == CopyOrder::Threads::kDrop;
    const pid_t pid = drops ? fork_orphan() : clone_sibling(true);
    if (pid == 0) {
        outcome = sleep_and_fork(order);
    } else if (pid < 0) {
        outcome.error = errno;
    }
    return pid;
}

}  // namespace

CopyOutcome make_sleeping_copy(const CopyOrder& order) noexcept {
    CopyOutcome outcome;
    sigset_t all;
    sigset_t before;
    if (::sigfillset(&all) < 0 || ::pthread_sigmask(SIG_BLOCK, &all, &before) != 0) {
        outcome.error = EINVAL;
        return outcome;
    }
    const pid_t pid = make_copy(order, outcome);
    if (pid > 0) {
        outcome.where = CopyOutcome::Where::kHere;
        outcome.copied = pid;
    }
    // Ignored: it was in force before.
    (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return outcome;
}

}  // namespace cellkeep::sandbox
