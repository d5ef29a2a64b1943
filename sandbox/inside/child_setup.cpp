// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/child_setup.hpp"

#include "sandbox/inside/init.hpp"
#include "sandbox/inside/init_socket.hpp"
#include "sandbox/inside/lockdown.hpp"
#include "sandbox/inside/network_setup.hpp"
#include "sandbox/inside/root_filesystem.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/shared/branch_namespaces.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace cellkeep::sandbox {

namespace {

[[noreturn]] void fail(ChildState& state, SetupStep step, int error) {
    SetupMessage message;
    message.kind = SetupMessageKind::kFailed;
    message.step = step;
    message.error = error;
    message.index = state.index;
    message.report = state.report;
    // Ignored: it fails if the server is gone, and then no process needs the message.
    (void)send_setup_message(state.control_fd, message, -1);
    ::_exit(1);
}

void applied(ChildState& state, ChildControl control) {
    state.report.outcome[static_cast<std::size_t>(control)] = 0;
}

/// Records the outcome; a failure ends everything unless the operator waived the control.
void settle(ChildState& state, ChildControl control, SetupStep step, int error) {
    state.report.outcome[static_cast<std::size_t>(control)] = error;
    if (error != 0 && (state.plan->waived & control_bit(control)) == 0) {
        fail(state, step, error);
    }
}

void require(ChildState& state, SetupStep step, int error) {
    if (error != 0) {
        fail(state, step, error);
    }
}

int wait_for_launcher(int go_fd) {
    char byte = 0;
    const ssize_t got = ::read(go_fd, &byte, 1);
    if (got < 0) {
        return errno;
    }
    return got == 1 ? 0 : EPIPE;
}

int become_guest(const Plan& plan) {
    // A new user namespace changes no uid: this is still the server's. From here on files are made
    // and devices opened as the session's user. The capabilities of the namespace stay until
    // drop_capabilities().
    if (layer_removed("guest_uid")) {
        return 0;
    }
    const uid_t uid = plan.zygote ? plan.host_uid : kGuestUid;
    const gid_t gid = plan.zygote ? plan.host_gid : kGuestGid;
    if (::prctl(PR_SET_KEEPCAPS, 1L, 0L, 0L, 0L) < 0 || ::setresgid(gid, gid, gid) < 0 ||
        ::setresuid(uid, uid, uid) < 0) {
        return errno;
    }
    (void)::umask(022);  // Ignored: cannot fail.
    // The change of uid made this process undumpable, which would take its own /proc files away.
    return ::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0 ? errno : 0;
}

/// Descriptors 0 to 2 are /dev/null; the sockets stay; everything else goes.
int arrange_descriptors(ChildState& state) {
    if (state.proc_fd >= 0) {
        state.oom_adj_fd = ::openat(state.proc_fd, "self/oom_score_adj", O_RDWR | O_CLOEXEC);
        if (state.oom_adj_fd < 0 ||
            ::pread(state.oom_adj_fd, state.oom_adj.data(), state.oom_adj.size() - 1, 0) < 0) {
            return errno;
        }
        (void)::close(state.proc_fd);  // Ignored: it was only read from.
        state.proc_fd = -1;
    }
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) {
        return errno;
    }
    for (int fd = 0; fd <= 2; ++fd) {
        if (::dup2(null, fd) < 0) {
            return errno;
        }
    }
    // Control 3, events 4, then these (the workspace until it is sent): first all of them out of
    // the way, so that placing one does not close another.
    const std::array kept{&state.workspace_fd, &state.oom_adj_fd, &state.worker_cgroup_fd};
    int place = kLauncherEventsFd + 1;
    const int above = place + static_cast<int>(kept.size());
    for (int* fd : kept) {
        if (*fd >= 0 && (*fd = ::fcntl(*fd, F_DUPFD_CLOEXEC, above)) < 0) {
            return errno;
        }
    }
    for (int* fd : kept) {
        if (*fd >= 0) {
            if (::dup3(*fd, place, O_CLOEXEC) < 0) {
                return errno;
            }
            *fd = place++;
        }
    }
    if (layer_removed("pid1_descriptors")) {
        return 0;
    }
    return ::close_range(static_cast<unsigned>(place), ~0U, 0) < 0 ? errno : 0;
}

using NamespaceFds = std::array<int, kBranchNamespaceCount>;

int open_namespace(const ChildState& state, std::size_t place, NamespaceFds& fds) {
    char path[32];
    (void)std::snprintf(path, sizeof(path), "self/ns/%s", kBranchNamespaces[place].file);
    fds[place] = ::openat(state.proc_fd, path, O_RDONLY | O_CLOEXEC);
    return fds[place] < 0 ? errno : 0;
}

/// So that the process for which the branch is made can enter it.
int tell_namespaces(const ChildState& state, const NamespaceFds& fds) {
    SetupMessage message;
    message.kind = SetupMessageKind::kNamespaces;
    const int error = send_with_descriptors(state.control_fd, &message, sizeof(message), fds, 0);
    for (const int fd : fds) {
        (void)::close(fd);  // Ignored: the server has its own now.
    }
    return error;
}

/// The second means against outliving the server (the first is the control socket's end of file).
int die_with_server(int control_fd) {
    // After the last change of credentials: each clears it (prctl(2)).
    if (!layer_removed("parent_death_signal") &&
        ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0) {
        return errno;
    }
    // The parent is in another pid namespace, so getppid() cannot tell whether it died before the
    // line above; a closed control socket can.
    pollfd server{control_fd, 0, 0};
    const int ready = ::poll(&server, 1, 0);
    if (ready < 0) {
        return errno;
    }
    return (server.revents & (POLLHUP | POLLERR)) != 0 ? ESRCH : 0;
}

void enter_root(ChildState& state) {
    SetupStep step = SetupStep::kPrivateMounts;
    // Nothing mounted here is seen outside, nor the other way round.
    require(
        state,
        step,
        !layer_removed("private_mounts") &&
                ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0
            ? errno
            : 0);
    applied(state, ChildControl::kMountNamespace);
    if (state.plan->branch) {
        const int error = cover_root(state, step);
        require(state, step, error);
        applied(state, ChildControl::kRootFilesystem);
        return;
    }
    if (!state.plan->privileged) {
        const int error = clone_host_mounts(state, step);
        require(state, step, error);
    }
    const int error = build_root(state, step);
    require(state, step, error);
    applied(state, ChildControl::kRootFilesystem);
}

void install_filter(ChildState& state) {
    if (layer_removed("seccomp")) {
        applied(state, ChildControl::kSeccomp);
        applied(state, ChildControl::kDenialReports);
        return;
    }
    const bool waived = (state.plan->waived & control_bit(ChildControl::kDenialReports)) != 0;
    int denial_error = 0;
    const int error = install_seccomp(*state.plan, waived, state.denial_fd, denial_error);
    // Without the filter there is nothing to report.
    settle(
        state,
        ChildControl::kDenialReports,
        SetupStep::kDenialReports,
        denial_error != 0 ? denial_error : error);
    settle(state, ChildControl::kSeccomp, SetupStep::kSeccomp, error);
}

void lock_down(ChildState& state) {
    NamespaceFds namespaces{};
    for (std::size_t i = 0; state.plan->branch && i < kBranchOuterCount; ++i) {
        require(state, SetupStep::kTellNamespaces, open_namespace(state, i, namespaces));
    }
    settle(
        state,
        ChildControl::kNestedUserNamespaces,
        SetupStep::kDisableUserNamespaces,
        layer_removed("nested_user_namespaces") ? 0 : disable_user_namespaces(state));
    if (state.plan->branch) {
        require(
            state,
            SetupStep::kTellNamespaces,
            open_namespace(state, kBranchOuterCount, namespaces));
        require(state, SetupStep::kTellNamespaces, tell_namespaces(state, namespaces));
    }
    settle(
        state,
        ChildControl::kSessionKeyring,
        SetupStep::kSessionKeyring,
        layer_removed("session_keyring") ? 0 : join_new_session_keyring());
    require(
        state, SetupStep::kNewSession, !layer_removed("new_session") && ::setsid() < 0 ? errno : 0);
    require(state, SetupStep::kDescriptors, arrange_descriptors(state));
    require(state, SetupStep::kRlimits, layer_removed("rlimits") ? 0 : set_rlimits(*state.plan));
    applied(state, ChildControl::kRlimits);
    require(state, SetupStep::kDropCapabilities, drop_capabilities());
    applied(state, ChildControl::kCapabilities);
    require(
        state,
        SetupStep::kNoNewPrivileges,
        !layer_removed("no_new_privileges") && ::prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0
            ? errno
            : 0);
    applied(state, ChildControl::kNoNewPrivileges);
    // Undumpable: no worker can trace pid 1 or look into its /proc directory.
    require(
        state,
        SetupStep::kParentDeathSignal,
        ::prctl(PR_SET_DUMPABLE, layer_removed("undumpable") ? 1L : 0L, 0L, 0L, 0L) < 0 ? errno
                                                                                        : 0);
    // A branch's dies with that of its parent: it is in its pid namespace. Its own parent, the
    // launcher, ends at once.
    if (!state.plan->branch) {
        require(state, SetupStep::kParentDeathSignal, die_with_server(state.control_fd));
    }
    // After the mounts: a landlocked process cannot mount (landlock(7)).
    settle(
        state,
        ChildControl::kLandlock,
        SetupStep::kLandlock,
        layer_removed("landlock") ? 0 : apply_landlock(*state.plan, state.report.landlock_abi));
    // Last: it forbids most of the above.
    install_filter(state);
}

/// A zygote keeps its capabilities (over its own namespaces alone) through the exec of its program,
/// so that forks of it can make sandboxes; what those may do is decided in lock_down().
void prepare_zygote(ChildState& state) {
    require(state, SetupStep::kSessionKeyring, join_new_session_keyring());
    require(state, SetupStep::kNewSession, ::setsid() < 0 ? errno : 0);
    require(state, SetupStep::kZygotePids, begin_pids_high(state));
    require(state, SetupStep::kDescriptors, arrange_descriptors(state));
    require(state, SetupStep::kKeepCapabilities, keep_capabilities());
    require(
        state,
        SetupStep::kNoNewPrivileges,
        ::prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0 ? errno : 0);
    require(
        state,
        SetupStep::kParentDeathSignal,
        ::prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0 ? errno : 0);
    require(state, SetupStep::kParentDeathSignal, die_with_server(state.control_fd));
}

/// Loopback, and the proxy's socket, of a network namespace that was made by the clone. One that
/// was made beforehand has both.
void set_up_network(ChildState& state) {
    if (!state.plan->enter_network) {
        require(state, SetupStep::kLoopback, bring_up_loopback());
    }
    if (!state.plan->make_listener || state.plan->enter_network) {
        return;
    }
    int listener = -1;
    require(state, SetupStep::kProxyListener, make_proxy_listener(listener));
    SetupMessage message;
    message.kind = SetupMessageKind::kListener;
    require(
        state, SetupStep::kProxyListener, send_setup_message(state.control_fd, message, listener));
    (void)::close(listener);  // Ignored: the server has its own now.
}

}  // namespace

void run_child(ChildState& state) noexcept {
    // clone3() gave these, or setns() the network; without any of them it would have failed.
    for (const ChildControl made :
         {ChildControl::kUserNamespace,
          ChildControl::kPidNamespace,
          ChildControl::kNetworkNamespace,
          ChildControl::kIpcNamespace,
          ChildControl::kUtsNamespace}) {
        applied(state, made);
    }
    require(state, SetupStep::kWaitForLauncher, wait_for_launcher(state.go_fd));
    require(state, SetupStep::kBecomeGuest, become_guest(*state.plan));
    if (!state.plan->enter_network) {
        require(
            state,
            SetupStep::kSocketMemory,
            bound_socket_memory(
                state.plan->branch ? state.proc_fd : -1, state.report.socket_bounds));
    }
    enter_root(state);
    set_up_network(state);
    const Plan& plan = *state.plan;
    require(
        state,
        SetupStep::kHostname,
        ::sethostname(plan.hostname.c_str(), plan.hostname.size()) < 0 ? errno : 0);
    // Moving a process between cgroups takes the kernel some 10 ms (it waits for all CPUs), so the
    // launcher does it while this process builds its root. No code of the guest's has run yet.
    require(state, SetupStep::kWaitForLauncher, wait_for_launcher(state.go_fd));
    // The namespace's root is the cgroup that this process is in now.
    settle(
        state,
        ChildControl::kCgroupNamespace,
        SetupStep::kCgroupNamespace,
        !layer_removed("cgroup_namespace") && ::unshare(CLONE_NEWCGROUP) < 0 ? errno : 0);
    if (plan.zygote) {
        prepare_zygote(state);
    } else {
        lock_down(state);
    }

    SetupMessage ready;
    ready.kind = SetupMessageKind::kReady;
    ready.report = state.report;
    require(
        state, SetupStep::kServe, send_setup_message(state.control_fd, ready, state.workspace_fd));
    (void)::close(state.workspace_fd);  // Ignored: the server has its own now.
    state.workspace_fd = -1;
    serve(state);
}

}  // namespace cellkeep::sandbox
