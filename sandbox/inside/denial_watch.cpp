// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/denial_watch.hpp"

#include "sandbox/shared/layer_switch.hpp"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// False if the server has no room for it now.
bool send_report(int events_fd, std::size_t call, std::uint64_t count) {
    EventMessage message;
    message.kind = EventKind::kDenied;
    message.system_call = static_cast<std::uint32_t>(call);
    message.count = count;
    ssize_t sent = -1;
    do {
        sent = ::send(events_fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    // Fails if the server is gone, which the end of the control socket shows, too.
    return sent == sizeof(message);
}

void count_denial(DenialWatch& watch, int call) {
    const auto index = static_cast<std::size_t>(call);
    if (index >= kSystemCallsMax) {
        return;  // None of these is in the filter's list.
    }
    watch.untold_calls += watch.untold[index] == 0 ? 1U : 0U;
    ++watch.untold[index];
}

/// Only the number is looked at, which is a register: what they may do, the system checks.
bool may_pass(DenialWatch& watch, const seccomp_notif& notification) {
    if (notification.data.nr != SYS_setns) {
        return false;
    }
    for (Pass& pass : watch.passes) {
        if (pass.pid != 0 && pass.pid == static_cast<int>(notification.pid) && pass.left > 0) {
            --pass.left;
            return true;
        }
    }
    return false;
}

/// One call; false if there was none after all (its thread has been killed).
bool answer_one(DenialWatch& watch, int events_fd) {
    alignas(seccomp_notif) static char asked[kNotificationBytesMax];
    alignas(seccomp_notif_resp) static char answer[kNotificationBytesMax];
    std::memset(asked, 0, sizeof(asked));  // The kernel insists (seccomp_unotify(2)).
    std::memset(answer, 0, sizeof(answer));
    if (::ioctl(watch.listener_fd, SECCOMP_IOCTL_NOTIF_RECV, asked) < 0) {
        return false;
    }
    seccomp_notif notification;
    std::memcpy(&notification, asked, sizeof(notification));
    const bool passes = may_pass(watch, notification);
    if (!passes) {
        count_denial(watch, notification.data.nr);
        tell_denials(watch, events_fd);
    }
    seccomp_notif_resp response{};
    response.id = notification.id;
    response.error = passes ? 0 : -EPERM;
    response.flags = passes ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    if (layer_removed("denial_answer")) {
        response.error = 0;
        response.flags =
            SECCOMP_USER_NOTIF_FLAG_CONTINUE;  // A mutant's: nothing else ever says so.
    }
    std::memcpy(answer, &response, sizeof(response));
    // Ignored: ENOENT means that the thread has been killed meanwhile.
    (void)::ioctl(watch.listener_fd, SECCOMP_IOCTL_NOTIF_SEND, answer);
    return true;
}

}  // namespace

int check_notifications() {
    seccomp_notif_sizes sizes{};
    if (::syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0U, &sizes) < 0) {
        return errno;
    }
    return sizes.seccomp_notif > kNotificationBytesMax ||
                   sizes.seccomp_notif_resp > kNotificationBytesMax
               ? EOVERFLOW
               : 0;
}

void let_pass(DenialWatch& watch, int pid, std::uint32_t calls) {
    // The newest is the last.
    std::size_t kept = 0;
    for (const Pass& pass : watch.passes) {
        if (pass.pid != 0 && pass.pid != pid) {
            watch.passes[kept++] = pass;
        }
    }
    if (calls > 0 && kept == kPassesMax) {
        for (std::size_t i = 1; i < kPassesMax; ++i) {
            watch.passes[i - 1] = watch.passes[i];
        }
        --kept;
    }
    if (calls > 0) {
        watch.passes[kept++] = {pid, calls};
    }
    while (kept < kPassesMax) {
        watch.passes[kept++] = {};
    }
}

void answer_denials(DenialWatch& watch, int events_fd) {
    for (int i = 0; i < kDenialsPerTurn; ++i) {
        // Only after poll(2) has seen one: receiving blocks.
        pollfd waiting{watch.listener_fd, POLLIN, 0};
        if (::poll(&waiting, 1, 0) != 1 || (waiting.revents & POLLIN) == 0 ||
            !answer_one(watch, events_fd)) {
            return;
        }
    }
}

void tell_denials(DenialWatch& watch, int events_fd) {
    if (watch.untold_calls == 0) {
        return;
    }
    watch.budget.refill(now_ms());
    for (std::size_t call = 0; call < kSystemCallsMax && watch.untold_calls > 0; ++call) {
        if (watch.untold[call] == 0) {
            continue;
        }
        if (!watch.budget.has_token()) {
            return;
        }
        if (!layer_removed("denial_reports") && !send_report(events_fd, call, watch.untold[call])) {
            return;
        }
        watch.budget.spend();
        watch.untold[call] = 0;
        --watch.untold_calls;
    }
}

bool can_tell(const DenialWatch& watch) {
    return watch.untold_calls > 0 && watch.budget.has_token();
}

int denial_timeout(const DenialWatch& watch) {
    return watch.untold_calls > 0 && !watch.budget.has_token() ? watch.budget.wait_ms(now_ms())
                                                               : -1;
}

}  // namespace cellkeep::sandbox
