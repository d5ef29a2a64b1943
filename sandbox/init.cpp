// SPDX-License-Identifier: Apache-2.0
#include "sandbox/init.hpp"

#include "sandbox/denial_watch.hpp"
#include "sandbox/descriptor_kind.hpp"
#include "sandbox/init_socket.hpp"
#include "sandbox/layer_switch.hpp"
#include "sandbox/start_request.hpp"
#include "sandbox/worker_birth.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>

namespace cellkeep::sandbox {

namespace {

/// How long a newborn may take to become its program. Another worker can stop it (it has the same
/// uid), and the server's patience is longer than this.
constexpr std::chrono::seconds kExecPatience{5};

enum class SlotState { kFree, kRunning, kEnded };

struct Slot {
    SlotState state = SlotState::kFree;
    pid_t pid = 0;
    EventMessage event;
};

/// A kill of everything that is not over yet: somebody inside may take long to die.
struct Sweep {
    bool pending = false;
    bool answers = false;  // a reply is owed, to this request
    std::uint32_t sequence = 0;
    bool tells = false;  // an event is owed
};

struct Init {
    const ChildState* child = nullptr;
    Sweep sweep;
    int signal_fd = -1;
    DenialWatch denials;
    std::array<Slot, kWorkersMax> slots{};
    ReceivedRequest request;
};

void close_received(Init& init) {
    for (std::size_t i = 0; i < init.request.fd_count; ++i) {
        (void)::close(init.request.fds[i]);  // Ignored: the worker has its own copy.
    }
    init.request.fd_count = 0;
}

/// The server has asked the same before it sent them (worker_descriptors.cpp).
bool may_cross(const Init& init) {
    if (init.request.fd_count < kStartFdsMin) {
        return false;
    }
    for (std::size_t i = 0; i < init.request.fd_count; ++i) {
        const bool fits = i < kStartFdsMin ? is_output(init.request.fds[i])
                                           : is_socket_pair_end(init.request.fds[i]);
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

Slot* free_slot(Init& init) {
    for (Slot& slot : init.slots) {
        if (slot.state == SlotState::kFree) {
            return &slot;
        }
    }
    return nullptr;
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

/// Forks and execs; on success the slot is running and pidfd is the caller's.
int start_worker(Init& init, const Start& start, Slot& slot, int& pidfd, SetupStep& step) {
    step = SetupStep::kFork;
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) < 0) {
        return errno;
    }
    // A zygote is pid 1 to be of many sandboxes, not a guest.
    const bool ordered = !init.child->plan->zygote && !layer_removed("oom_order");
    int error = ordered ? write_oom_adj(init.child->oom_adj_fd, "1000") : 0;
    const pid_t pid = error != 0 ? -1 : start.warm ? fork_warm(&pidfd) : fork_with_pidfd(&pidfd);
    if (pid == 0) {
        const Newborn newborn{
            std::span(init.request.fds).first(init.request.fd_count),
            init.child->worker_cgroup_fd,
            failure[1],
            init.child->entry};
        become_worker(newborn, start);
    }
    if (pid < 0 && error == 0) {
        error = errno;
    }
    (void)::close(failure[1]);  // Ignored: only its end of file matters.
    // Ignored: without it pid 1 is merely easier prey for the out-of-memory killer.
    (void)write_oom_adj(init.child->oom_adj_fd, init.child->oom_adj.data());
    if (error == 0) {
        // A warm worker has no exec that could fail; what else does shows as its exit.
        error = start.warm ? 0 : await_exec(failure[0], pidfd, step);
        if (error != 0) {
            (void)::close(pidfd);  // Ignored: the reaper takes the process.
            pidfd = -1;
        } else {
            slot.state = SlotState::kRunning;
            slot.pid = pid;
        }
    }
    (void)::close(failure[0]);  // Ignored: it was only read from.
    return error;
}

bool has_ended_slots(const Init& init) {
    for (const Slot& slot : init.slots) {
        if (slot.state == SlotState::kEnded) {
            return true;
        }
    }
    return false;
}

void flush_events(Init& init) {
    for (Slot& slot : init.slots) {
        if (slot.state == SlotState::kEnded &&
            send_message(
                init.child->events_fd, &slot.event, sizeof(slot.event), -1, MSG_DONTWAIT) == 0) {
            slot = Slot{};
        }
    }
    // After the exits that it is about.
    if (init.sweep.tells && !init.sweep.pending && !has_ended_slots(init)) {
        EventMessage swept;
        swept.kind = EventKind::kSwept;
        init.sweep.tells =
            send_message(init.child->events_fd, &swept, sizeof(swept), -1, MSG_DONTWAIT) != 0;
    }
}

void note_exit(Init& init, pid_t pid, int wait_status) {
    for (Slot& slot : init.slots) {
        if (slot.state == SlotState::kRunning && slot.pid == pid) {
            slot.state = SlotState::kEnded;
            slot.event.wait_status = wait_status;
        }
    }
}

void reply_to(Init& init, const ReplyMessage& reply) {
    // Ignored: if the server is gone, the next poll says so.
    (void)send_message(init.child->control_fd, &reply, sizeof(reply), -1, 0);
}

/// Nobody but pid 1 is left.
void finish_sweep(Init& init) {
    init.sweep.pending = false;
    if (init.sweep.answers) {
        init.sweep.answers = false;
        flush_events(init);
        reply_to(init, {init.sweep.sequence, 0, SetupStep::kServe});
    }
}

void reap(Init& init) {
    while (true) {
        int wait_status = 0;
        const pid_t pid = ::waitpid(-1, &wait_status, WNOHANG);
        if (pid > 0) {
            note_exit(init, pid, wait_status);
        } else if (pid == 0) {
            return;  // Nobody else has ended.
        } else if (errno != EINTR) {
            if (init.sweep.pending) {
                finish_sweep(init);
            }
            return;
        }
    }
}

void handle_start(Init& init, const RequestHeader& header, std::size_t size) {
    static Start start;
    start = Start{};
    ReplyMessage reply{header.sequence, 0, SetupStep::kDecodeStart};
    int pidfd = -1;
    Slot* slot = free_slot(init);
    if (init.sweep.pending) {
        reply.error = EBUSY;
        reply.step = SetupStep::kServe;
    } else if (slot == nullptr) {
        reply.error = EAGAIN;
    } else if (!may_cross(init) || !decode_start(init.request.bytes.data(), size, start)) {
        reply.error = EINVAL;
    } else if (start.warm && init.child->entry == nullptr) {
        reply.error = ENOSYS;
    } else {
        slot->event.worker_id = header.worker_id;
        reply.error = start_worker(init, start, *slot, pidfd, reply.step);
    }
    const int sent = send_message(init.child->control_fd, &reply, sizeof(reply), pidfd, 0);
    if (sent != 0 && pidfd >= 0) {
        // A worker that the server has no handle of is none: the reaper takes it unannounced.
        kill_newborn(pidfd);
        *slot = Slot{};
        reply.error = sent;
        reply.step = SetupStep::kServe;
        reply_to(init, reply);
    }
    if (pidfd >= 0) {
        (void)::close(pidfd);  // Ignored: the server has its own.
    }
}

/// Everything but pid 1: kill(-1) takes the whole pid namespace and no fork escapes it, because a
/// fork fails in a process with a fatal signal pending; orphans come to pid 1, so "no child left"
/// is all. It is not waited for here: a process with many mappings may take seconds to die.
void handle_kill(Init& init, const RequestHeader& header) {
    if (::kill(-1, SIGKILL) < 0 && errno != ESRCH) {
        // Not one of them could be killed: pid 1 itself can be, and takes them along.
        ::_exit(1);
    }
    init.sweep.pending = true;
    if (header.kind == RequestKind::kKillAll) {
        init.sweep.answers = true;
        init.sweep.sequence = header.sequence;
    } else {
        init.sweep.tells = true;
    }
    reap(init);
}

void handle_request(Init& init) {
    const std::size_t size = receive_request(init.child->control_fd, init.request);
    if (size == 0 && layer_removed("control_end_of_file")) {
        (void)::pause();  // Ignored: a mutant's.
    }
    if (size == 0) {
        ::_exit(0);  // The kernel ends everything else in the pid namespace.
    }
    RequestHeader header;
    std::memcpy(&header, init.request.bytes.data(), sizeof(header));
    if (header.kind == RequestKind::kStart) {
        handle_start(init, header, size);
    } else {
        handle_kill(init, header);
    }
    close_received(init);
}

bool has_unsent(const Init& init) {
    return has_ended_slots(init) || (init.sweep.tells && !init.sweep.pending);
}

}  // namespace

void serve(const ChildState& state) noexcept {
    static Init init;
    init.child = &state;
    init.denials.listener_fd = state.denial_fd;
    sigset_t children;
    if (::sigemptyset(&children) < 0 || ::sigaddset(&children, SIGCHLD) < 0 ||
        ::pthread_sigmask(SIG_BLOCK, &children, nullptr) != 0) {
        ::_exit(1);
    }
    init.signal_fd = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (init.signal_fd < 0) {
        ::_exit(1);
    }
    while (true) {
        const bool unsent = has_unsent(init) || can_tell(init.denials);
        std::array<pollfd, 4> watched{{
            {state.control_fd, POLLIN, 0},
            {init.signal_fd, POLLIN, 0},
            {unsent ? state.events_fd : -1, POLLOUT, 0},
            {init.denials.listener_fd, POLLIN, 0},
        }};
        const int timeout = denial_timeout(init.denials);
        if (::poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) {
            ::_exit(1);
        }
        if (watched[1].revents != 0) {
            signalfd_siginfo ignored;
            // Ignored: it only says that someone ended, reap() finds out who.
            (void)!::read(init.signal_fd, &ignored, sizeof(ignored));
            reap(init);
        }
        if (watched[0].revents != 0) {
            handle_request(init);
        }
        if (watched[3].revents != 0) {
            answer_denials(init.denials, state.events_fd);
        }
        flush_events(init);
        tell_denials(init.denials, state.events_fd);
    }
}

}  // namespace cellkeep::sandbox
