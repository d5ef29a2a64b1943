// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/init.hpp"

#include "sandbox/inside/init_state.hpp"
#include "sandbox/inside/port_connection.hpp"
#include "sandbox/shared/layer_switch.hpp"
#include "sandbox/shared/sleep_messages.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

/// More than the server ever has under way.
constexpr int kRequestsPerTurn = 64;

void close_received(Init& init) {
    for (std::size_t i = 0; i < init.request.fd_count; ++i) {
        (void)::close(init.request.fds[i]);  // Ignored: the worker has its own copy.
    }
    init.request.fd_count = 0;
}

bool has_ended_slots(const Init& init) {
    for (const Slot& slot : init.slots) {
        if (slot.state == SlotState::kEnded) {
            return true;
        }
    }
    return false;
}

bool has_slot(const Init& init, std::uint32_t group, SlotState state) {
    for (const Slot& slot : init.slots) {
        if (slot.state == state && slot.group == group) {
            return true;
        }
    }
    return false;
}

/// Ends the sweeps of groups in which no process runs any more.
void settle_group_sweeps(Init& init) {
    for (std::uint32_t group = 0; group < kWorkerGroupsMax; ++group) {
        GroupSweep& sweep = init.group_sweeps.groups[group];
        if (sweep.pending && is_group_empty(sweep) && !has_slot(init, group, SlotState::kRunning)) {
            end_group_sweep(sweep);
        }
    }
}

void flush_events(Init& init) {
    for (Slot& slot : init.slots) {
        if (slot.state == SlotState::kEnded &&
            send_message(
                init.child->events_fd, &slot.event, sizeof(slot.event), -1, MSG_DONTWAIT) == 0) {
            slot = Slot{};
        }
    }
    // After the exits that they are about.
    for (std::uint32_t group = 0; group < kWorkerGroupsMax; ++group) {
        GroupSweep& sweep = init.group_sweeps.groups[group];
        if (sweep.tells && !sweep.pending && !has_slot(init, group, SlotState::kEnded)) {
            EventMessage swept;
            swept.kind = EventKind::kGroupSwept;
            swept.group = group;
            sweep.tells =
                send_message(init.child->events_fd, &swept, sizeof(swept), -1, MSG_DONTWAIT) != 0;
        }
    }
    if (init.sweep.tells && !init.sweep.pending && !has_ended_slots(init)) {
        EventMessage swept;
        swept.kind = EventKind::kSwept;
        init.sweep.tells =
            send_message(init.child->events_fd, &swept, sizeof(swept), -1, MSG_DONTWAIT) != 0;
    }
}

/// What a worker said that never became its program. Its end of the pipe is closed: it has ended.
void note_failure(Slot& slot) {
    WorkerFailure reported;
    if (slot.failure_fd >= 0 &&
        ::read(slot.failure_fd, &reported, sizeof(reported)) == sizeof(reported)) {
        slot.event.failed_step = reported.step;
        slot.event.failed_error = reported.error;
    }
    close_failure(slot);
}

void note_exit(Init& init, pid_t pid, int wait_status) {
    for (Slot& slot : init.slots) {
        if (slot.state == SlotState::kRunning && slot.pid == pid) {
            slot.state = SlotState::kEnded;
            slot.event.wait_status = wait_status;
            note_failure(slot);
        }
    }
}

/// Only pid 1 is left.
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
            return;  // No other process has ended.
        } else if (errno != EINTR) {
            if (init.sweep.pending) {
                finish_sweep(init);
            }
            return;
        }
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

/// Kills one group's workers and what they lead. The server has killed the rest of the group by its
/// cgroup, if it has one. Pid 1 watches that cgroup, because it reaps what ends.
void handle_group_kill(Init& init, const RequestHeader& header) {
    if (header.group >= kWorkerGroupsMax || init.request.fd_count > 1 ||
        (init.request.fd_count == 1 && !is_cgroup_file(init.request.fds[0], O_RDONLY))) {
        return;
    }
    const bool watched = init.request.fd_count == 1;
    init.request.fd_count = 0;  // It is the sweep's from here on.
    begin_group_sweep(init.group_sweeps.groups[header.group], watched ? init.request.fds[0] : -1);
    for (const Slot& slot : init.slots) {
        if (slot.state == SlotState::kRunning && slot.group == header.group) {
            // Ignored: ESRCH means that it has ended by itself.
            (void)::kill(slot.pid, SIGKILL);
        }
    }
    reap(init);
    settle_group_sweeps(init);
}

/// The whole process group, as a terminal does it. A worker that does not lead one yet is alone.
void handle_signal(const Init& init, const RequestHeader& header) {
    if (header.signal < 1 || header.signal > kSignalMax) {
        return;
    }
    for (const Slot& slot : init.slots) {
        if (slot.state == SlotState::kRunning && slot.event.worker_id == header.worker_id &&
            ::kill(-slot.pid, header.signal) < 0) {
            // Ignored: ESRCH means that it has ended by itself.
            (void)::kill(slot.pid, header.signal);
        }
    }
}

/// If the server has ended meanwhile, the end of file of its control socket says so, which is read
/// next.
void handle_death_signal(const Init& init, const RequestHeader& header) {
    const bool known = header.signal == 0 || header.signal == SIGKILL;
    const int error = !known ? EINVAL
                      : ::prctl(PR_SET_PDEATHSIG, static_cast<long>(header.signal), 0L, 0L, 0L) < 0
                          ? errno
                          : 0;
    reply_to(init, {header.sequence, error, SetupStep::kServe});
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
    } else if (header.kind == RequestKind::kAdopt) {
        handle_adoption(init, header);
    } else if (header.kind == RequestKind::kSweepGroup) {
        handle_group_kill(init, header);
    } else if (header.kind == RequestKind::kSignal) {
        handle_signal(init, header);
    } else if (header.kind == RequestKind::kLetPass) {
        if (header.forked > 1 && header.passes <= kLeavingCallsMax) {
            let_pass(init.denials, header.forked, header.passes);
        }
    } else if (header.kind == RequestKind::kConnect) {
        handle_connect(init.request, header);
    } else if (header.kind == RequestKind::kDeathSignal) {
        handle_death_signal(init, header);
    } else {
        handle_kill(init, header);
    }
    close_received(init);
}

bool has_unsent(const Init& init) {
    bool unsent = has_ended_slots(init) || (init.sweep.tells && !init.sweep.pending);
    for (const GroupSweep& sweep : init.group_sweeps.groups) {
        unsent = unsent || (sweep.tells && !sweep.pending);
    }
    return unsent;
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
        std::array<pollfd, 4 + kWorkerGroupsMax> watched{{
            {state.control_fd, POLLIN, 0},
            {init.signal_fd, POLLIN, 0},
            {unsent ? state.events_fd : -1, POLLOUT, 0},
            {init.denials.listener_fd, POLLIN, 0},
        }};
        for (std::size_t group = 0; group < kWorkerGroupsMax; ++group) {
            watched[4 + group] = {init.group_sweeps.groups[group].events_fd, POLLPRI, 0};
        }
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
        // Before a call is answered, all is known that the server has said before it.
        for (int i = 0; watched[3].revents != 0 && i < kRequestsPerTurn; ++i) {
            pollfd control{state.control_fd, POLLIN, 0};
            if (::poll(&control, 1, 0) != 1) {
                break;
            }
            handle_request(init);
        }
        if (watched[3].revents != 0) {
            answer_denials(init.denials, state.events_fd);
        }
        settle_group_sweeps(init);
        flush_events(init);
        tell_denials(init.denials, state.events_fd);
    }
}

}  // namespace cellkeep::sandbox
