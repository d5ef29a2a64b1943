// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/init_state.hpp"
#include "sandbox/inside/start_request.hpp"
#include "sandbox/inside/worker_birth.hpp"
#include "sandbox/shared/descriptor_kind.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

namespace cellkeep::sandbox {

namespace {

/// How long a newborn that is alone may take to become its program. The server's patience is
/// longer.
constexpr std::chrono::seconds kExecPatience{20};
/// And one that is not, before the server hears that it was started.
constexpr std::chrono::milliseconds kExecGlance{500};

/// Descriptors that a terminal becomes.
constexpr std::size_t kTerminalPlaces = 3;

/// The server has asked the same before it sent them (worker_descriptors.cpp).
bool may_cross(const Init& init, std::size_t worker_fds, const RequestHeader& header) {
    if (header.own_terminal == 1) {
        return worker_fds == 1 && header.own_input == 0 && header.warm == 0 &&
               (is_terminal(init.request.fds[0]) || layer_removed("received_descriptors"));
    }
    const bool own_input = header.own_input == 1;
    const std::size_t least = kStartFdsMin + (own_input ? 1 : 0);
    if (worker_fds < least || worker_fds > kStartFdsMax) {
        return false;
    }
    for (std::size_t i = 0; i < worker_fds; ++i) {
        const int fd = init.request.fds[i];
        const bool fits = own_input && i == 0 ? is_input(fd)
                          : i < least         ? is_output(fd)
                                              : is_socket_pair_end(fd);
        if (!fits && !layer_removed("received_descriptors")) {
            return false;
        }
    }
    return true;
}

/// Children are the first that the kernel's out-of-memory killer takes, pid 1 the last: the value
/// is inherited by fork and may go back to where it was without a capability (proc(5)).
int write_oom_adj(int fd, const char* value) {
    if (fd < 0) {
        return 0;
    }
    return ::pwrite(fd, value, std::strlen(value), 0) < 0 ? errno : 0;
}

/// The C library's own fork: it keeps its books of threads and tells the libraries of the program
/// that goes on (pthread_atfork(3)).
pid_t fork_warm(int* pidfd) {
    const pid_t pid = ::fork();
    if (pid <= 0) {
        return pid;
    }
    // It cannot be reaped before pid 1 does it.
    *pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (*pidfd < 0) {
        const int error = errno;
        (void)::kill(pid, SIGKILL);  // Ignored: then it has ended by itself.
        errno = error;
        return -1;
    }
    return pid;
}

/// Plain fork with a pidfd. Not clone3(): the filter answers ENOSYS to it.
pid_t fork_with_pidfd(int* pidfd) {
    return static_cast<pid_t>(
        ::syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, nullptr, pidfd, nullptr, 0));
}

void kill_newborn(int pidfd) {
    // Ignored: ESRCH means that it has ended by itself.
    (void)::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
}

/// Waits for the exec, which closes the pipe: 0, or why and where it failed.
int await_exec(int failure_fd, int pidfd, SetupStep& step) {
    const auto deadline = std::chrono::steady_clock::now() + kExecPatience;
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd watched{failure_fd, POLLIN, 0};
        const int ready =
            left.count() <= 0 ? 0 : ::poll(&watched, 1, static_cast<int>(left.count()));
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        WorkerFailure reported;
        const ssize_t got = ready > 0 ? ::read(failure_fd, &reported, sizeof(reported)) : -1;
        if (got == 0) {
            return 0;
        }
        if (got == sizeof(reported)) {
            step = reported.step;
            return reported.error;
        }
        step = SetupStep::kExec;
        kill_newborn(pidfd);
        return ready == 0 ? ETIMEDOUT : EIO;
    }
}

/// Waits for the same among others, one of which can stop a newborn for ever: then it goes on
/// without the exec. What a caller sends to a program at once would else come before there is one,
/// and a terminal without a foreground process swallows a Ctrl-C. Reads nothing: a failure is told
/// as the newborn's exit.
void glance_at_exec(int failure_fd) {
    pollfd watched{failure_fd, POLLIN, 0};
    // Ignored: an interrupted wait is one that was too short.
    (void)::poll(&watched, 1, static_cast<int>(kExecGlance.count()));
}

/// Whether pid 1 is the only process here, zombies included. Orphans are its children.
bool is_alone() {
    siginfo_t ignored{};
    return ::waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/// Forks and execs; on success the slot is running and pidfd is the caller's. The first worker_fds
/// of the descriptors that came are the worker's; what is behind them is its cgroup.
int start_worker(
    Init& init,
    const Start& start,
    std::size_t worker_fds,
    Slot& slot,
    int& pidfd,
    SetupStep& step) {
    step = SetupStep::kFork;
    const bool alone = is_alone();
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC | O_NONBLOCK) < 0) {
        return errno;
    }
    // A zygote is pid 1 to be of many sandboxes, not a guest.
    const bool ordered = !init.child->plan->zygote && !layer_removed("oom_order");
    int error = ordered ? write_oom_adj(init.child->oom_adj_fd, "1000") : 0;
    const pid_t pid = error != 0 ? -1 : start.warm ? fork_warm(&pidfd) : fork_with_pidfd(&pidfd);
    if (pid == 0) {
        const bool own_cgroup = worker_fds < init.request.fd_count;
        const int first = init.request.fds[0];
        const std::array<int, kTerminalPlaces> terminal{first, first, first};
        const Newborn newborn{
            start.own_terminal ? std::span<const int>(terminal)
                               : std::span<const int>(init.request.fds).first(worker_fds),
            own_cgroup ? init.request.fds[worker_fds] : init.child->worker_cgroup_fd,
            init.child->plan->worker_open_files,
            start.own_input || start.own_terminal,
            start.own_terminal,
            failure[1],
            init.child->entry};
        become_worker(newborn, start);
    }
    if (pid < 0) {
        error = error == 0 ? errno : error;
        pidfd = -1;  // a clone(2) that a limit refused has written a number that is no descriptor
    }
    (void)::close(failure[1]);  // Ignored: only its end of file matters.
    // Ignored: without it pid 1 is merely easier prey for the out-of-memory killer.
    (void)write_oom_adj(init.child->oom_adj_fd, init.child->oom_adj.data());
    if (error == 0) {
        // A warm worker has no exec that could fail; what else does shows as its exit.
        if (!start.warm && !alone) {
            glance_at_exec(failure[0]);
        }
        error = start.warm || !alone ? 0 : await_exec(failure[0], pidfd, step);
        if (error != 0) {
            (void)::close(pidfd);  // Ignored: the reaper takes the process.
            pidfd = -1;
        } else {
            slot.state = SlotState::kRunning;
            slot.pid = pid;
            slot.failure_fd = alone ? -1 : std::exchange(failure[0], -1);
        }
    }
    if (failure[0] >= 0) {
        (void)::close(failure[0]);  // Ignored: it was only read from.
    }
    return error;
}

/// How many of the descriptors that came are the worker's own; 0: something is wrong with them.
std::size_t count_worker_fds(const Init& init, const RequestHeader& header) {
    const std::size_t count = init.request.fd_count;
    if (header.own_cgroup > 1 || header.own_input > 1 || header.own_terminal > 1 ||
        header.group >= kWorkerGroupsMax || count < header.own_cgroup) {
        return 0;
    }
    const std::size_t own = count - header.own_cgroup;
    const bool fits = header.own_cgroup == 0 || is_cgroup_file(init.request.fds[own], O_WRONLY);
    return fits && may_cross(init, own, header) ? own : 0;
}

}  // namespace

Slot* free_slot(Init& init) noexcept {
    for (Slot& slot : init.slots) {
        if (slot.state == SlotState::kFree) {
            return &slot;
        }
    }
    return nullptr;
}

void close_failure(Slot& slot) noexcept {
    if (slot.failure_fd >= 0) {
        (void)::close(std::exchange(slot.failure_fd, -1));  // Ignored: it was only read from.
    }
}

void reply_to(const Init& init, const ReplyMessage& reply) noexcept {
    // Ignored: if the server is gone, the next poll says so.
    (void)send_message(init.child->control_fd, &reply, sizeof(reply), -1, 0);
}

void handle_start(Init& init, const RequestHeader& header, std::size_t size) noexcept {
    static Start start;
    start = Start{};
    ReplyMessage reply{header.sequence, 0, SetupStep::kDecodeStart};
    int pidfd = -1;
    Slot* slot = free_slot(init);
    const std::size_t worker_fds = count_worker_fds(init, header);
    if (init.sweep.pending || (worker_fds > 0 && init.group_sweeps.groups[header.group].pending)) {
        reply.error = EBUSY;
        reply.step = SetupStep::kServe;
    } else if (slot == nullptr) {
        reply.error = EAGAIN;
    } else if (worker_fds == 0 || !decode_start(init.request.bytes.data(), size, start)) {
        reply.error = EINVAL;
    } else if (start.warm && init.child->entry == nullptr) {
        reply.error = ENOSYS;
    } else {
        slot->event.worker_id = header.worker_id;
        slot->group = header.group;
        reply.error = start_worker(init, start, worker_fds, *slot, pidfd, reply.step);
        if (reply.error == 0) {
            reply.pid = slot->pid;
            init.group_sweeps.groups[header.group].leader = slot->pid;
        }
    }
    reply_with_worker(init, reply, slot, pidfd);
}

void reply_with_worker(Init& init, ReplyMessage reply, Slot* slot, int pidfd) noexcept {
    const int sent = send_message(init.child->control_fd, &reply, sizeof(reply), pidfd, 0);
    if (sent != 0 && pidfd >= 0) {
        // A worker that the server has no handle of is none: the reaper takes it unannounced.
        kill_newborn(pidfd);
        close_failure(*slot);
        *slot = Slot{};
        reply.error = sent;
        reply.step = SetupStep::kServe;
        reply_to(init, reply);
    }
    if (pidfd >= 0) {
        (void)::close(pidfd);  // Ignored: the server has its own.
    }
}

}  // namespace cellkeep::sandbox
