// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/launch_steps.hpp"

#include "sandbox/inside/branch/branch_launch.hpp"
#include "sandbox/inside/child_setup.hpp"
#include "sandbox/inside/init_socket.hpp"
#include "sandbox/inside/network_setup.hpp"
#include "sandbox/inside/root_filesystem.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/shared/layer_switch.hpp"
#include "sandbox/shared/plan_codec.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::sandbox {

namespace {

int write_text(int directory_fd, const std::string& path, const std::string& text) {
    const int fd = ::openat(directory_fd, path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    const int error = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
    (void)::close(fd);  // Ignored: the write has already succeeded or failed.
    return error;
}

std::optional<Plan> read_plan() {
    struct stat info {};
    if (::fstat(kLauncherPlanFd, &info) < 0 || info.st_size <= 0 ||
        info.st_size > static_cast<off_t>(kPlanBytesMax)) {
        return std::nullopt;
    }
    std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
    const ssize_t got = ::pread(kLauncherPlanFd, bytes.data(), bytes.size(), 0);
    if (got != info.st_size) {
        return std::nullopt;
    }
    return decode_plan(bytes);
}

int report_failure(const ChildState& state, SetupStep step, int error) {
    SetupMessage message;
    message.kind = SetupMessageKind::kFailed;
    message.step = step;
    message.error = error;
    message.index = state.index;
    message.report = state.report;
    // Ignored: it fails if the server is gone, and then no process needs the message.
    (void)send_setup_message(kLauncherControlFd, message, -1);
    return 1;
}

/// In a zygote no process has the id 0, so that capabilities stay through changes of ids
/// (capabilities(7)). Such a change takes away the right to write a child's id maps (proc(5)).
int become_owner_in_zygote(const Plan& plan) {
    constexpr auto kKeep = static_cast<uid_t>(-1);
    return ::setresgid(kKeep, plan.host_gid, kKeep) < 0 ||
                   ::setresuid(kKeep, plan.host_uid, kKeep) < 0 ||
                   ::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0
               ? errno
               : 0;
}

/// The kernel charges what is used inside (inotify, pending signals, namespaces) also to the user
/// who made the namespace (user_namespaces(7)). That has to be the session's uid, not the root that
/// all sessions and the host share. The real and saved ids stay root's, so processes of that uid
/// may not touch this process.
int become_owner(const Plan& plan) {
    constexpr auto kKeep = static_cast<uid_t>(-1);
    if (::setresgid(kKeep, plan.host_gid, kKeep) < 0 ||
        ::setresuid(kKeep, plan.host_uid, kKeep) < 0) {
        return errno;
    }
    // The change took the effective capabilities away (capabilities(7)), which some hosts ask of
    // a process that makes a user namespace.
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &header, data) < 0) {
        return errno;
    }
    for (__user_cap_data_struct& half : data) {
        half.effective = half.permitted;
    }
    return ::syscall(SYS_capset, &header, data) < 0 ? errno : 0;
}

int become_server_again(gid_t gid) {
    constexpr auto kKeep = static_cast<uid_t>(-1);
    // The uid brings the effective capabilities back; a change of it clears the death signal.
    if (::setresuid(kKeep, 0, kKeep) < 0 || ::setresgid(kKeep, gid, kKeep) < 0 ||
        ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0) {
        return errno;
    }
    return 0;
}

/// Pid 1 as a child of the server, in every namespace but the cgroup one (it makes that itself,
/// once it is in its cgroup) and, if the launcher has entered one, the network one. CLONE_PARENT
/// also gives it the launcher's exit signal, SIGCHLD.
/// That of a branch becomes a child of its parent's pid 1 when the launcher has ended: what a pid
/// namespace has, its own pid 1 has to reap.
pid_t clone_pid1(const Plan& plan, int& pidfd) {
    clone_args args{};
    args.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                 (plan.enter_network ? 0U : CLONE_NEWNET) | CLONE_PIDFD |
                 (plan.branch ? 0U : CLONE_PARENT);
    args.exit_signal = plan.branch ? SIGCHLD : 0;
    struct Part {
        const char* layer;
        std::uint64_t flag;
    };
    for (const Part part :
         {Part{"pid_namespace", CLONE_NEWPID},
          Part{"mount_namespace", CLONE_NEWNS},
          Part{"network_namespace", CLONE_NEWNET},
          Part{"ipc_namespace", CLONE_NEWIPC},
          Part{"uts_namespace", CLONE_NEWUTS}}) {
        if (layer_removed(part.layer)) {
            args.flags &= ~part.flag;
        }
    }
    args.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
    return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
}

/// One id, or for a zygote the ids of all sandboxes that it may make, each mapped to itself.
std::string id_map(const Plan& plan, std::uint32_t id) {
    if (plan.zygote) {
        // An ordinary user's own is all there is, and its gid may be another number.
        const std::string first = std::to_string(plan.privileged ? plan.first_id : id);
        return first + " " + first + " " + std::to_string(plan.privileged ? plan.id_count : 1);
    }
    // Above a branch is the namespace of its parent's guests.
    return std::to_string(kGuestUid) + " " + std::to_string(plan.branch ? kGuestUid : id) + " 1";
}

int write_maps(const ChildState& state, pid_t pid) {
    const Plan& plan = *state.plan;
    // The mount namespace of a branch's parent shows no whole /proc.
    const int proc_fd = plan.branch ? state.proc_fd : AT_FDCWD;
    const std::string proc = (plan.branch ? "" : "/proc/") + std::to_string(pid) + "/";
    // setgroups first: a group map cannot be written unprivileged without it, and with it no
    // process inside can drop a group that denies it something (user_namespaces(7), CVE-2014-8989).
    // A privileged server has no groups left to drop, so "deny" costs nothing there.
    int error = layer_removed("setgroups") ? 0 : write_text(proc_fd, proc + "setgroups", "deny");
    if (error == 0) {
        error = write_text(proc_fd, proc + "uid_map", id_map(plan, plan.host_uid));
    }
    if (error == 0) {
        error = write_text(proc_fd, proc + "gid_map", id_map(plan, plan.host_gid));
    }
    return error;
}

/// A zygote and a branch's parent see no cgroup file system: the files' descriptors came along,
/// opened by the server.
int join_cgroup(const ChildState& state, const std::string& path, const std::string& pid) {
    if (!state.plan->nested && !state.plan->branch) {
        return write_text(AT_FDCWD, path, pid);
    }
    const int fd = kLauncherCgroupFd + static_cast<int>(state.index);
    return ::write(fd, pid.data(), pid.size()) < 0 ? errno : 0;
}

int join_cgroups(ChildState& state, pid_t pid) {
    state.index = 0;
    for (const std::string& path : state.plan->cgroup_procs) {
        if (layer_removed("cgroups")) {
            break;
        }
        if (const int error = join_cgroup(state, path, std::to_string(pid)); error != 0) {
            return error;
        }
        ++state.index;
    }
    return 0;
}

/// The launcher's half after the clone. The server learns of pid 1 first of all. A failure leaves
/// pid 1 waiting for a byte that never comes; it ends when go_fd closes with this process, and the
/// server kills it besides.
int finish(ChildState& state, pid_t pid, int pidfd, int go_fd, gid_t own_gid) {
    SetupMessage launched;
    launched.kind = SetupMessageKind::kLaunched;
    launched.report = state.report;
    if (send_setup_message(kLauncherControlFd, launched, pidfd) != 0) {
        return 1;
    }
    if (const int error = state.plan->privileged ? become_server_again(own_gid) : 0; error != 0) {
        return report_failure(state, SetupStep::kCreateNamespaces, error);
    }
    // The launcher of a branch is in the parent's pid namespace, and the /proc that it has is not.
    const pid_t shown = state.plan->branch ? host_pid(state.proc_fd, pidfd) : pid;
    if (const int error = shown < 0 ? -shown : write_maps(state, shown); error != 0) {
        return report_failure(state, SetupStep::kMapUser, error);
    }
    if (::write(go_fd, "m", 1) != 1) {
        return 1;
    }
    if (const int error = join_cgroups(state, pid); error != 0) {
        return report_failure(state, SetupStep::kJoinCgroup, error);
    }
    return ::write(go_fd, "c", 1) == 1 ? 0 : 1;
}

/// Opened by the server's user: whether a process may move depends on the user who opened the file
/// (cgroups(7)).
int open_worker_cgroup(ChildState& state) {
    const std::string& path = state.plan->worker_procs;
    if (path.empty()) {
        return 0;
    }
    if (state.plan->nested || state.plan->branch) {
        state.worker_cgroup_fd =
            kLauncherCgroupFd + static_cast<int>(state.plan->cgroup_procs.size());
        return ::fcntl(state.worker_cgroup_fd, F_GETFD) < 0 ? errno : 0;
    }
    state.worker_cgroup_fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return state.worker_cgroup_fd < 0 ? errno : 0;
}

/// Before anything of the session is made, so that nothing of the session owns it: of the zygote's
/// user namespace, or one that is given.
int enter_other_network(ChildState& state, SetupStep& step) {
    const Plan& plan = *state.plan;
    step = SetupStep::kEnterNetwork;
    if (!plan.enter_network || layer_removed("network_namespace")) {
        return 0;
    }
    if (!plan.nested) {
        return enter_network(kLauncherNetworkFd, plan.privileged);
    }
    int listener = -1;
    int* const wanted = plan.make_listener ? &listener : nullptr;
    int error = make_network_here(state.report.socket_bounds, wanted, step);
    if (error != 0 || wanted == nullptr) {
        return error;
    }
    SetupMessage message;
    message.kind = SetupMessageKind::kListener;
    error = send_setup_message(state.control_fd, message, listener);
    (void)::close(listener);  // Ignored: the server has its own now.
    return error;
}

int change_owner(const Plan& plan) {
    if (layer_removed("namespace_owner")) {
        return 0;
    }
    return plan.privileged ? become_owner(plan) : plan.nested ? become_owner_in_zygote(plan) : 0;
}

}  // namespace

int launch_network() {
    static ChildState state;
    SetupStep step = SetupStep::kDescriptors;
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0 ||
        ::fcntl(kLauncherControlFd, F_SETFD, FD_CLOEXEC) < 0) {
        return report_failure(state, step, errno);
    }
    const int error = make_network(kLauncherControlFd, step);
    return error == 0 ? 0 : report_failure(state, step, error);
}

int launch_sandbox(WarmEntry entry) {
    static ChildState state;
    state.report.outcome.fill(kControlNotReached);
    state.control_fd = kLauncherControlFd;
    state.events_fd = kLauncherEventsFd;
    state.entry = entry;
    // The workers that pid 1 starts must not have them (the server passed them without the flag).
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0 ||
        ::close_range(kLauncherControlFd, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
        return report_failure(state, SetupStep::kDescriptors, errno);
    }
    static std::optional<Plan> plan;
    plan = read_plan();
    if (!plan) {
        return report_failure(state, SetupStep::kReadPlan, EPROTO);
    }
    state.plan = &*plan;
    if (plan->privileged) {
        if (!layer_removed("drop_groups") && ::setgroups(0, nullptr) < 0) {
            return report_failure(state, SetupStep::kDropGroups, errno);
        }
        SetupStep step = SetupStep::kReadPlan;
        if (const int error = clone_host_mounts(state, step); error != 0) {
            return report_failure(state, step, error);
        }
    }
    if (plan->branch) {
        state.proc_fd = kLauncherCgroupFd + static_cast<int>(plan->cgroup_procs.size()) +
                        (plan->worker_procs.empty() ? 0 : 1);
    }
    std::array<int, 2> go{};
    if (::pipe2(go.data(), O_CLOEXEC) < 0) {
        return report_failure(state, SetupStep::kCreateNamespaces, errno);
    }
    if (const int error = open_worker_cgroup(state); error != 0) {
        return report_failure(state, SetupStep::kOpenWorkerCgroup, error);
    }
    SetupStep step = SetupStep::kEnterNetwork;
    if (const int error = enter_other_network(state, step); error != 0) {
        return report_failure(state, step, error);
    }
    int pidfd = -1;
    const gid_t own_gid = ::getegid();
    if (const int error = change_owner(*plan); error != 0) {
        return report_failure(state, SetupStep::kCreateNamespaces, error);
    }
    const pid_t pid = clone_pid1(*plan, pidfd);
    if (pid < 0) {
        return report_failure(state, SetupStep::kCreateNamespaces, errno);
    }
    if (pid == 0) {
        (void)::close(go[1]);  // Ignored: it was never written to.
        state.go_fd = go[0];
        run_child(state);
    }
    return finish(state, pid, pidfd, go[1], own_gid);
}

}  // namespace cellkeep::sandbox
