// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/lockdown.hpp"

#include "sandbox/inside/denial_watch.hpp"
#include "sandbox/shared/layer_switch.hpp"
#include "sandbox/shared/sync_notifications.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

namespace cellkeep::sandbox {

namespace {

int write_at(int directory_fd, const char* path, const char* text) {
    const int fd = ::openat(directory_fd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    const int error = ::write(fd, text, std::strlen(text)) < 0 ? errno : 0;
    (void)::close(fd);  // Ignored: the write has already succeeded or failed.
    return error;
}

// The Landlock interface as of ABI 7 (linux/landlock.h of the build host may be older).
struct LandlockRulesetAttr {
    std::uint64_t handled_access_fs;
    std::uint64_t handled_access_net;
    std::uint64_t scoped;
};
// Packed by the ABI (linux/landlock.h).
struct __attribute__((packed)) LandlockPathBeneathAttr {
    std::uint64_t allowed_access;
    std::int32_t parent_fd;
};
constexpr unsigned kCreateRulesetVersion = 1U;
constexpr int kRulePathBeneath = 1;

constexpr std::uint64_t kExecute = 1U << 0U;
constexpr std::uint64_t kWriteFile = 1U << 1U;
constexpr std::uint64_t kReadFile = 1U << 2U;
constexpr std::uint64_t kReadDir = 1U << 3U;
constexpr std::uint64_t kMakeChar = 1U << 6U;
constexpr std::uint64_t kMakeBlock = 1U << 11U;
constexpr std::uint64_t kIoctlDev = 1U << 15U;
constexpr std::uint64_t kResolveUnix = 1U << 16U;  // connect to a socket file made outside
constexpr std::uint64_t kScopeSockets = 1U;        // abstract Unix ones
constexpr std::uint64_t kScopeAll = 3U;            // those, and signals

/// Every file-system right that the ABI knows.
constexpr std::uint64_t file_system_rights(int abi) {
    const unsigned count = abi >= 9 ? 17U : abi >= 5 ? 16U : abi >= 3 ? 15U : abi == 2 ? 14U : 13U;
    return (1ULL << count) - 1;
}

int allow_beneath(int ruleset_fd, const char* path, std::uint64_t rights) {
    const int fd = ::open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    const LandlockPathBeneathAttr rule{rights, fd};
    const long rc = ::syscall(SYS_landlock_add_rule, ruleset_fd, kRulePathBeneath, &rule, 0U);
    const int error = rc < 0 ? errno : 0;
    (void)::close(fd);  // Ignored: an O_PATH descriptor has nothing to lose.
    return error;
}

/// branches: what is written where is left to the mounts, all of which are read-only but three.
int add_rules(int ruleset_fd, std::uint64_t rights, bool branches) {
    // No device node can be made or driven anywhere, and no socket file from outside connected to.
    // Everything else is decided by where it is.
    const std::uint64_t writable = rights & ~(kMakeChar | kMakeBlock | kIoctlDev | kResolveUnix);
    int error =
        allow_beneath(ruleset_fd, "/", branches ? writable : kExecute | kReadFile | kReadDir);
    for (const char* path : {"/workspace", "/tmp", "/dev/shm"}) {
        if (error == 0) {
            error = allow_beneath(ruleset_fd, path, writable);
        }
    }
    if (error == 0) {
        error = allow_beneath(ruleset_fd, "/dev", kReadFile | kWriteFile);
    }
    return error;
}

/// Beneath the smallest usual /proc/sys/kernel/pid_max, 32768.
constexpr const char* kZygoteLastPid = "32000";

/// How much of the kernel's per-user counters one session gets, beneath what its user has in all
/// (128 instances by default): the only bound between the sessions of an ordinary user.
struct UserLimit {
    const char* path;
    const char* value;
};
constexpr std::array<UserLimit, 2> kUserLimits{{
    {"sys/user/max_inotify_instances", "32"},
    {"sys/user/max_inotify_watches", "8192"},
}};

bool is_report(const sock_filter& instruction) {
    return instruction.code == (BPF_RET | BPF_K) && instruction.k == SECCOMP_RET_USER_NOTIF;
}

/// The listener's descriptor is close-on-exec (seccomp(2)).
int install_with_listener(const sock_fprog& program, int& listener_fd) {
    const std::span<const sock_filter> filter(program.filter, program.len);
    if (std::none_of(filter.begin(), filter.end(), is_report)) {
        return EOPNOTSUPP;
    }
    if (const int error = check_notifications(); error != 0) {
        return error;
    }
    // Once pid 1 has taken a call up, only death interrupts it (Linux 5.19): signals would
    // otherwise make it ask again, and be counted again.
    constexpr std::array kWays{
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
        SECCOMP_FILTER_FLAG_NEW_LISTENER};
    long fd = -1;
    for (const auto flags : kWays) {
        fd = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
        if (fd >= 0 || errno != EINVAL) {
            break;
        }
    }
    listener_fd = static_cast<int>(fd);
    if (fd < 0) {
        return errno;
    }
    // Ignored: before Linux 6.6 there is none (EINVAL), and an answer takes longer.
    (void)::ioctl(listener_fd, kNotifySetFlags, kNotifySyncWakeUp);
    return 0;
}

/// Refused all the same, without a report. (Without a listener the kernel would answer ENOSYS.)
void silence(std::span<sock_filter> filter) {
    for (sock_filter& instruction : filter) {
        if (is_report(instruction)) {
            instruction.k = SECCOMP_RET_ERRNO | EPERM;
        }
    }
}

}  // namespace

int disable_user_namespaces(const ChildState& state) {
    if (state.proc_fd < 0) {
        return ENODEV;  // No /proc (waived): its sysctl cannot be written.
    }
    int error = write_at(state.proc_fd, "sys/user/max_user_namespaces", "1");
    if (error != 0) {
        return error;
    }
    for (const UserLimit& limit : kUserLimits) {
        if (layer_removed("inotify_limits")) {
            break;
        }
        // ENOENT: a kernel without inotify.
        error = write_at(state.proc_fd, limit.path, limit.value);
        if (error != 0 && error != ENOENT) {
            return error;
        }
    }
    if (::unshare(CLONE_NEWUSER) < 0) {
        return errno;
    }
    // Entering the namespace made this process undumpable, and its maps belong to root then
    // (proc(5)); it is made undumpable again when everything is done.
    if (::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0) {
        return errno;
    }
    if ((error = write_at(state.proc_fd, "self/setgroups", "deny")) != 0 ||
        (error = write_at(state.proc_fd, "self/uid_map", "1000 1000 1")) != 0 ||
        (error = write_at(state.proc_fd, "self/gid_map", "1000 1000 1")) != 0) {
        return error;
    }
    // ENOSPC is the limit speaking; anything else would be luck (user_namespaces(7)).
    if (::unshare(CLONE_NEWUSER) == 0) {
        return EEXIST;
    }
    return errno == ENOSPC ? 0 : errno;
}

int join_new_session_keyring() {
    const long rc = ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
    // A kernel without keyrings has none to share.
    return rc < 0 && errno != ENOSYS ? errno : 0;
}

int lower_rlimit(std::uint32_t resource, std::uint64_t value) {
    const auto which = static_cast<__rlimit_resource>(resource);
    rlimit current{};
    if (::getrlimit(which, &current) < 0) {
        return errno;
    }
    // Lower only: raising a hard limit takes a capability of the host (setrlimit(2)).
    const rlim_t most = value < current.rlim_max ? value : current.rlim_max;
    const rlimit wanted{most, most};
    return ::setrlimit(which, &wanted) < 0 ? errno : 0;
}

int set_rlimits(const Plan& plan) {
    for (const PlanRlimit& limit : plan.rlimits) {
        if (const int error = lower_rlimit(limit.resource, limit.value); error != 0) {
            return error;
        }
    }
    return 0;
}

int drop_capabilities() {
    // Ambient first, then bounding, while CAP_SETPCAP is still there; securebits so that not even
    // uid 0 of some namespace would regain any by exec (capabilities(7)).
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0L, 0L, 0L) < 0) {
        return errno;
    }
    for (unsigned long capability = 0; capability < 64; ++capability) {
        if (::prctl(PR_CAPBSET_READ, capability, 0L, 0L, 0L) < 0) {
            break;  // Past the last one this kernel knows.
        }
        if (!layer_removed("bounding_set") &&
            ::prctl(PR_CAPBSET_DROP, capability, 0L, 0L, 0L) < 0) {
            return errno;
        }
    }
    constexpr unsigned long kBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                    SECBIT_NO_CAP_AMBIENT_RAISE |
                                    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (!layer_removed("securebits") && ::prctl(PR_SET_SECUREBITS, kBits, 0L, 0L, 0L) < 0) {
        return errno;
    }
    if (layer_removed("capability_sets")) {
        return 0;
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    if (::syscall(SYS_capset, &header, none) < 0) {
        return errno;
    }
    __user_cap_data_struct now[2]{};
    if (::syscall(SYS_capget, &header, now) < 0) {
        return errno;
    }
    const __u32 left = now[0].effective | now[0].permitted | now[0].inheritable | now[1].effective |
                       now[1].permitted | now[1].inheritable;
    return left == 0 ? 0 : EPERM;
}

int keep_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    if (::syscall(SYS_capget, &header, sets) < 0) {
        return errno;
    }
    for (__user_cap_data_struct& half : sets) {
        half.inheritable = half.permitted;
    }
    if (::syscall(SYS_capset, &header, sets) < 0) {
        return errno;
    }
    for (unsigned long capability = 0; capability < 64; ++capability) {
        const bool permitted = (sets[capability / 32].permitted >> (capability % 32) & 1U) != 0;
        if (permitted && ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0L, 0L) < 0) {
            return errno;
        }
    }
    return 0;
}

int begin_pids_high(const ChildState& state) {
    if (state.proc_fd < 0) {
        return ENODEV;
    }
    // ENOENT: a kernel without checkpoint and restore. Then only the reseeding that each kernel
    // does makes its forks differ.
    const int error = write_at(state.proc_fd, "sys/kernel/ns_last_pid", kZygoteLastPid);
    return error == ENOENT ? 0 : error;
}

int apply_landlock(const Plan& plan, std::int32_t& abi) {
    const long version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0UL, kCreateRulesetVersion);
    if (version < 0) {
        return errno;
    }
    abi = static_cast<std::int32_t>(version);
    // Pid 1 of a branch has to end a process that came with its parent's rules.
    const std::uint64_t scopes = plan.branch ? kScopeSockets : kScopeAll;
    LandlockRulesetAttr attr{
        file_system_rights(abi), 0, abi >= 6 && !layer_removed("landlock_scopes") ? scopes : 0};
    // Older kernels take a shorter struct (landlock_create_ruleset(2)). TCP rights stay unhandled:
    // they can only list ports, and the network is an empty namespace where a guest may use
    // loopback.
    const std::size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
    const long rc = ::syscall(SYS_landlock_create_ruleset, &attr, size, 0U);
    if (rc < 0) {
        return errno;
    }
    const int ruleset_fd = static_cast<int>(rc);
    int error = add_rules(ruleset_fd, attr.handled_access_fs, plan.branches);
    if (error == 0 && ::syscall(SYS_landlock_restrict_self, ruleset_fd, 0U) < 0) {
        error = errno;
    }
    (void)::close(ruleset_fd);  // Ignored: the rules are in force or the step has failed.
    return error;
}

int install_seccomp(const Plan& plan, bool reports_waived, int& denial_fd, int& denial_error) {
    static std::array<sock_filter, BPF_MAXINSNS> filter;
    const std::size_t count = plan.seccomp.size() / sizeof(sock_filter);
    if (count == 0 || count > filter.size() || plan.seccomp.size() % sizeof(sock_filter) != 0) {
        return EINVAL;
    }
    std::memcpy(filter.data(), plan.seccomp.data(), plan.seccomp.size());
    const sock_fprog program{static_cast<unsigned short>(count), filter.data()};
    denial_error = install_with_listener(program, denial_fd);
    if (denial_error == 0) {
        return 0;
    }
    if (!reports_waived) {
        return denial_error;
    }
    silence(std::span(filter.data(), count));
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) < 0 ? errno : 0;
}

}  // namespace cellkeep::sandbox
