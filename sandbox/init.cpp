// SPDX-License-Identifier: Apache-2.0
#include "sandbox/init.hpp"

#include "sandbox/denial_watch.hpp"
#include "sandbox/descriptor_kind.hpp"
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

struct Init {
    const ChildState* child = nullptr;
    int signal_fd = -1;
    DenialWatch denials;
    std::array<Slot, kWorkersMax> slots{};
    std::array<int, kStartFdsMax> fds{-1, -1, -1};
    std::size_t fd_count = 0;
    alignas(RequestHeader) std::array<char, kRequestBytesMax> request{};
};

void close_received(Init& init) {
    for (std::size_t i = 0; i < init.fd_count; ++i) {
        (void)::close(init.fds[i]);  // Ignored: the worker has its own copy.
    }
    init.fd_count = 0;
}

int send_message(int socket, const void* bytes, std::size_t size, int fd, int flags) {
    iovec part{const_cast<void*>(bytes), size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
    }
    while (::sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0) {
        if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/// The size of the request, 0 if the server is gone or broke the protocol (which is the same to
/// us).
std::size_t receive_request(Init& init) {
    iovec part{init.request.data(), init.request.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kStartFdsMax)]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t got = -1;
    do {
        got = ::recvmsg(init.child->control_fd, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < static_cast<ssize_t>(sizeof(RequestHeader)) ||
        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        return 0;
    }
    init.fd_count = 0;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (count > kStartFdsMax) {
            return 0;  // The buffer's alignment may have room for one more.
        }
        init.fd_count = count;
        std::memcpy(init.fds.data(), CMSG_DATA(header), init.fd_count * sizeof(int));
    }
    return static_cast<std::size_t>(got);
}

/// The server has asked the same before it sent them (worker_descriptors.cpp).
bool may_cross(const Init& init) {
    if (init.fd_count < kStartFdsMin) {
        return false;
    }
    for (std::size_t i = 0; i < init.fd_count; ++i) {
        const bool fits =
            i < kStartFdsMin ? is_output(init.fds[i]) : is_socket_pair_end(init.fds[i]);
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
    int error = layer_removed("oom_order") ? 0 : write_oom_adj(init.child->oom_adj_fd, "1000");
    const pid_t pid = error != 0 ? -1 : fork_with_pidfd(&pidfd);
    if (pid == 0) {
        const Newborn newborn{
            std::span(init.fds).first(init.fd_count), init.child->worker_cgroup_fd, failure[1]};
        become_worker(newborn, start);
    }
    if (pid < 0 && error == 0) {
        error = errno;
    }
    (void)::close(failure[1]);  // Ignored: only its end of file matters.
    // Ignored: without it pid 1 is merely easier prey for the out-of-memory killer.
    (void)write_oom_adj(init.child->oom_adj_fd, init.child->oom_adj.data());
    if (error == 0) {
        error = await_exec(failure[0], pidfd, step);
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

void flush_events(Init& init) {
    for (Slot& slot : init.slots) {
        if (slot.state == SlotState::kEnded &&
            send_message(
                init.child->events_fd, &slot.event, sizeof(slot.event), -1, MSG_DONTWAIT) == 0) {
            slot = Slot{};
        }
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

void reap(Init& init, int flags) {
    while (true) {
        int wait_status = 0;
        const pid_t pid = ::waitpid(-1, &wait_status, flags);
        if (pid > 0) {
            note_exit(init, pid, wait_status);
        } else if (pid == 0 || errno != EINTR) {
            return;  // Nobody has ended, or nobody is left.
        }
    }
}

void handle_start(Init& init, const RequestHeader& header, std::size_t size) {
    static Start start;
    start = Start{};
    ReplyMessage reply{header.sequence, 0, SetupStep::kDecodeStart};
    int pidfd = -1;
    Slot* slot = free_slot(init);
    if (slot == nullptr) {
        reply.error = EAGAIN;
    } else if (!may_cross(init) || !decode_start(init.request.data(), size, start)) {
        reply.error = EINVAL;
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
        // Ignored: if the server is gone, the next poll says so.
        (void)send_message(init.child->control_fd, &reply, sizeof(reply), -1, 0);
    }
    if (pidfd >= 0) {
        (void)::close(pidfd);  // Ignored: the server has its own.
    }
}

/// Everything but pid 1: kill(-1) takes the whole pid namespace and no fork escapes it, because a
/// fork fails in a process with a fatal signal pending; orphans come to pid 1, so "no child left"
/// is all.
void handle_kill_all(Init& init, const RequestHeader& header) {
    ReplyMessage reply{header.sequence, 0, SetupStep::kServe};
    if (::kill(-1, SIGKILL) < 0 && errno != ESRCH) {
        reply.error = errno;
    } else {
        reap(init, 0);
    }
    flush_events(init);
    // Ignored: if the server is gone, the next poll says so.
    (void)send_message(init.child->control_fd, &reply, sizeof(reply), -1, 0);
}

void handle_request(Init& init) {
    const std::size_t size = receive_request(init);
    if (size == 0 && layer_removed("control_end_of_file")) {
        (void)::pause();  // Ignored: a mutant's.
    }
    if (size == 0) {
        ::_exit(0);  // The kernel ends everything else in the pid namespace.
    }
    RequestHeader header;
    std::memcpy(&header, init.request.data(), sizeof(header));
    if (header.kind == RequestKind::kStart) {
        handle_start(init, header, size);
    } else {
        handle_kill_all(init, header);
    }
    close_received(init);
}

bool has_unsent(const Init& init) {
    for (const Slot& slot : init.slots) {
        if (slot.state == SlotState::kEnded) {
            return true;
        }
    }
    return false;
}

}  // namespace

int send_setup_message(int control_fd, const SetupMessage& message, int fd) {
    return send_message(control_fd, &message, sizeof(message), fd, 0);
}

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
            reap(init, WNOHANG);
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
