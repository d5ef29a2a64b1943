// SPDX-License-Identifier: Apache-2.0
#include "sandbox/policy/seccomp_policy.hpp"

#include "protocol/support/unique_fd.hpp"
#include "sandbox/policy/ioctl_commands.hpp"
#include "sandbox/policy/reported_calls.hpp"
#include "sandbox/shared/layer_switch.hpp"
#include "sandbox/shared/socket_options.hpp"

#include <seccomp.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

namespace cellkeep::sandbox {

namespace {

/// Allowed whatever their arguments, each with a space after it. What is missing here is refused;
/// section 7 of SECURITY.md says for each refused family which attack it stops.
constexpr std::string_view kAllowed =
    // Files. No handles, no quota, no mounts, no sync of whole file systems, no leases.
    "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat "
    "openat2 creat close close_range stat fstat lstat newfstatat statx statfs fstatfs lseek "
    "access faccessat faccessat2 readlink readlinkat getdents getdents64 getcwd chdir fchdir "
    "rename renameat renameat2 mkdir mkdirat rmdir link linkat symlink symlinkat unlink "
    "unlinkat chmod fchmod fchmodat chown fchown lchown fchownat umask utime utimes futimesat "
    "utimensat truncate ftruncate fallocate fadvise64 readahead fsync fdatasync "
    "sync_file_range flock copy_file_range dup dup2 dup3 pipe pipe2 getxattr "
    "lgetxattr fgetxattr listxattr llistxattr flistxattr "
    // Memory of this process.
    "munmap mprotect mremap msync mincore madvise brk mlock mlock2 munlock membarrier "
    "get_mempolicy "
    // Waiting and time. No setting of clocks.
    "select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
    "epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime "
    "timerfd_gettime inotify_init inotify_init1 inotify_add_watch inotify_rm_watch nanosleep "
    "clock_nanosleep clock_gettime clock_getres gettimeofday time times alarm getitimer "
    "setitimer pause timer_create timer_settime timer_gettime timer_getoverrun timer_delete "
    // Processes and threads of this sandbox (clone is below). No tracing, no namespaces.
    "fork vfork execve exit exit_group wait4 waitid kill tkill tgkill pidfd_open "
    "pidfd_send_signal getpid gettid getppid getpgid getpgrp getsid setpgid setsid "
    "set_tid_address set_robust_list get_robust_list futex futex_waitv rseq arch_prctl "
    "restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait "
    "rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend sigaltstack sched_yield "
    "sched_getaffinity sched_getparam sched_getscheduler sched_getattr sched_get_priority_max "
    "sched_get_priority_min sched_rr_get_interval getpriority getcpu getrusage getrlimit "
    "setrlimit "
    // Who and where am I. No changing of credentials.
    "getuid geteuid getgid getegid getresuid getresgid getgroups capget uname sysinfo "
    "getrandom "
    // Sockets of the empty network (socket and the flags of sending are below).
    "connect bind listen accept accept4 shutdown getsockname getpeername ";

/// Calls that a C library tries first and falls back from, but only for ENOSYS. clone3 keeps its
/// flags behind a pointer, where no filter sees them.
constexpr std::array kAnswerNoSuchCall{"clone3", "execveat"};

/// Puts page-cache pages into pipes as splice does. EINVAL is its own answer for descriptors it
/// cannot serve, upon which every caller copies (Python, Node, Go, Rust).
constexpr const char* kAnswerInvalid = "sendfile";

/// The calling thread only: pid 1 has the guest's uid, and the server waits for its answers.
constexpr std::array kOnItselfOnly{
    "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"};

/// Calls whose refusal programs take in their stride only as "not supported" (cp -a copies ACLs).
constexpr std::array kAnswerNotSupported{
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"};

/// Newer than libseccomp's tables or than this list: a range, so that tomorrow's C library falls
/// back.
constexpr int kFirstUnknownCall = 450;
constexpr int kLastUnknownCall = 511;

/// Every CLONE_NEW* flag that clone(2) takes (the time namespace's bit is part of the exit signal).
constexpr std::uint64_t kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;

constexpr std::array kPrctlOptions{
    PR_SET_PDEATHSIG,
    PR_GET_PDEATHSIG,
    PR_GET_DUMPABLE,
    PR_SET_DUMPABLE,
    PR_SET_NAME,
    PR_GET_NAME,
    PR_GET_SECCOMP,
    PR_CAPBSET_READ,
    PR_GET_SECUREBITS,
    PR_SET_TIMERSLACK,
    PR_GET_TIMERSLACK,
    PR_SET_CHILD_SUBREAPER,
    PR_GET_CHILD_SUBREAPER,
    PR_SET_NO_NEW_PRIVS,
    PR_GET_NO_NEW_PRIVS,
    PR_SET_THP_DISABLE,
    PR_GET_THP_DISABLE,
    PR_GET_TID_ADDRESS,
    PR_SET_VMA};

constexpr std::array kFcntlCommands{
    F_DUPFD,
    F_DUPFD_CLOEXEC,
    F_GETFD,
    F_SETFD,
    F_GETFL,
    F_SETFL,
    F_GETLK,
    F_SETLK,
    F_SETLKW,
    F_OFD_GETLK,
    F_OFD_SETLK,
    F_OFD_SETLKW,
    F_GETOWN,
    F_SETOWN,
    F_GETPIPE_SZ,
    F_SETPIPE_SZ,
    F_ADD_SEALS,
    F_GET_SEALS};

class Filter {
 public:
    Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release) {
        keep(context_ ? 0 : -ENOMEM);
        if (layer_removed("filter_architecture")) {
            keep(seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW));
        } else {
            keep(seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
        }
        // A binary tree over the numbers: half the cost of a list at install and per call.
        keep(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
    }

    void rule(std::uint32_t action, int call, std::initializer_list<scmp_arg_cmp> arguments) {
        if (call < 0) {
            return;  // A name that this architecture does not have.
        }
        keep(seccomp_rule_add_array(
            context_.get(),
            action,
            call,
            static_cast<unsigned>(arguments.size()),
            arguments.begin()));
    }
    void allow(std::string_view name, std::initializer_list<scmp_arg_cmp> arguments = {}) {
        // A mutant that forgets to look at the arguments of this call.
        const bool careless =
            arguments.size() != 0 && layer_removed(("filter_" + std::string(name)).c_str());
        rule(
            SCMP_ACT_ALLOW,
            number(name),
            careless ? std::initializer_list<scmp_arg_cmp>{} : arguments);
    }
    /// Says that it was done, and does nothing.
    void ignore(std::string_view name, std::initializer_list<scmp_arg_cmp> arguments) {
        rule(SCMP_ACT_ERRNO(0), number(name), arguments);
    }
    /// Refused as well, and handed to pid 1, which answers EPERM.
    void report(std::string_view name, std::initializer_list<scmp_arg_cmp> arguments = {}) {
        if (!layer_removed(("filter_" + std::string(name)).c_str())) {
            rule(SCMP_ACT_NOTIFY, number(name), arguments);
        }
    }
    static int number(std::string_view name) {
        return seccomp_syscall_resolve_name(std::string(name).c_str());
    }

    Result<std::string> compile() const {
        if (error_ != 0) {
            return Error::from_errno(-error_, "compile the seccomp filter");
        }
        const UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
        if (!file) {
            return Error::from_errno(errno, "memfd_create");
        }
        if (const int rc = seccomp_export_bpf(context_.get(), file.get()); rc < 0) {
            return Error::from_errno(-rc, "seccomp_export_bpf");
        }
        const off_t size = ::lseek(file.get(), 0, SEEK_END);
        std::string program(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
        if (::pread(file.get(), program.data(), program.size(), 0) != size ||
            size > static_cast<off_t>(BPF_MAXINSNS * sizeof(sock_filter))) {
            return Error(ErrorCode::kSystem, "seccomp_export_bpf: not a usable program");
        }
        return program;
    }

 private:
    void keep(int rc) {
        if (rc < 0 && error_ == 0) {
            error_ = rc;
        }
    }
    std::unique_ptr<void, decltype(&seccomp_release)> context_;
    int error_ = 0;
};

/// The constants of system headers are of many types, none of them negative.
template <typename Value>
constexpr scmp_arg_cmp equals(unsigned argument, Value value) {
    return {argument, SCMP_CMP_EQ, static_cast<std::uint64_t>(value), 0};
}

template <typename Value>
constexpr scmp_arg_cmp masked(unsigned argument, std::uint64_t mask, Value value) {
    return {argument, SCMP_CMP_MASKED_EQ, mask, static_cast<std::uint64_t>(value)};
}

/// ZeroMQ aborts if these are refused. Each of its threads sets its policy to what it is, by its
/// number; bind() looks for an interface of that name, where only this error means there is none.
void answer_zeromq(Filter& filter) {
    filter.ignore("sched_setscheduler", {{0, SCMP_CMP_NE, 0, 0}, equals(1, SCHED_OTHER)});
    filter.rule(
        SCMP_ACT_ERRNO(EOPNOTSUPP),
        Filter::number("socket"),
        {equals(0, AF_NETLINK), equals(2, NETLINK_ROUTE)});
}

constexpr std::uint64_t kSocketTypeMask = 0xf;  // SOCK_NONBLOCK and SOCK_CLOEXEC lie above

/// Unix sockets, and TCP and UDP of an empty network. Everything else a kernel may offer (AF_ALG,
/// AF_VSOCK, AF_PACKET, AF_NETLINK, AF_RDS, raw sockets, MPTCP, SCTP …) is missing from this list.
void allow_sockets(Filter& filter) {
    for (const char* call : {"socket", "socketpair"}) {
        for (const auto type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
            filter.allow(
                call, {equals(0, AF_UNIX), masked(1, kSocketTypeMask, type), equals(2, 0)});
        }
    }
    for (const int family : {AF_INET, AF_INET6}) {
        for (const int protocol : {0, static_cast<int>(IPPROTO_TCP)}) {
            filter.allow(
                "socket",
                {equals(0, family), masked(1, kSocketTypeMask, SOCK_STREAM), equals(2, protocol)});
        }
        for (const int protocol : {0, static_cast<int>(IPPROTO_UDP)}) {
            filter.allow(
                "socket",
                {equals(0, family), masked(1, kSocketTypeMask, SOCK_DGRAM), equals(2, protocol)});
        }
    }
    // Without MSG_OOB (CVE-2025-38236).
    struct FlagsAt {
        const char* call;
        unsigned argument;
    };
    for (const FlagsAt& call : std::initializer_list<FlagsAt>{
             {"sendto", 3},
             {"sendmsg", 2},
             {"sendmmsg", 3},
             {"recvfrom", 3},
             {"recvmsg", 2},
             {"recvmmsg", 3}}) {
        filter.allow(call.call, {masked(call.argument, MSG_OOB, 0)});
    }
    for (const SocketOption& option : kSetOptions) {
        filter.allow("setsockopt", {equals(1, option.level), equals(2, option.name)});
    }
    for (const SocketOption& option : kIgnoredOptions) {
        filter.ignore("setsockopt", {equals(1, option.level), equals(2, option.name)});
    }
    for (const SocketOption& option : kGetOptions) {
        filter.allow("getsockopt", {equals(1, option.level), equals(2, option.name)});
    }
}

void allow_by_argument(Filter& filter) {
    filter.allow("clone", {masked(0, kNamespaceFlags, 0)});
    for (const int option : kPrctlOptions) {
        filter.allow("prctl", {equals(0, option)});
    }
    for (const int command : kFcntlCommands) {
        filter.allow("fcntl", {equals(1, static_cast<std::uint64_t>(command))});
    }
    for (const auto command : kIoctlCommands) {
        filter.allow("ioctl", {equals(1, command)});
    }
    for (const char* call : kOnItselfOnly) {
        filter.allow(call, {equals(0, 0)});
    }
    filter.allow("setpriority", {equals(0, PRIO_PROCESS), equals(1, 0)});
    // Huge pages are the host's reserve, and no cgroup of ours counts them.
    filter.allow("mmap", {masked(3, MAP_HUGETLB, 0)});
    filter.allow("memfd_create", {masked(1, MFD_HUGETLB, 0)});
    // Its own limits only.
    filter.allow("prlimit64", {equals(0, 0)});
    // Ask for the execution domain, or set the default one: no READ_IMPLIES_EXEC, no fixed
    // addresses.
    for (const auto persona : {0x0ULL, 0xffffffffULL}) {
        filter.allow("personality", {equals(0, persona)});
    }
    // Plain files, fifos and sockets; no device nodes.
    for (const int type : {0, S_IFREG, S_IFIFO, S_IFSOCK}) {
        filter.allow("mknod", {masked(1, S_IFMT, type)});
        filter.allow("mknodat", {masked(2, S_IFMT, type)});
    }
}

/// Where notification cannot be had these calls get the default answer, EPERM.
void report_refusals(Filter& filter) {
    for (const char* name : kReportedCalls) {
        filter.report(name);
    }
    for (std::uint64_t flag = 1; flag <= kNamespaceFlags; flag <<= 1U) {
        if ((kNamespaceFlags & flag) != 0) {
            filter.report("clone", {masked(0, flag, flag)});
        }
    }
    for (std::uint64_t family = AF_UNSPEC; family <= AF_INET6; ++family) {
        if (family == AF_INET || family == AF_INET6) {
            filter.report("socket", {equals(0, family), masked(1, kSocketTypeMask, SOCK_RAW)});
        } else if (family != AF_UNIX) {
            filter.report("socket", {equals(0, family)});
        }
    }
    for (std::uint64_t family = AF_INET6 + 1; family < AF_MAX; ++family) {
        if (family != AF_NETLINK) {
            filter.report("socket", {equals(0, family)});
        }
    }
    filter.report(
        "socket", {equals(0, AF_NETLINK), scmp_arg_cmp{2, SCMP_CMP_NE, NETLINK_ROUTE, 0}});
    filter.report("socket", {scmp_arg_cmp{0, SCMP_CMP_GE, AF_MAX, 0}});
}

/// What gives capabilities away, and gives none to who has none (capabilities(7)): see leaving.hpp.
void let_drop(Filter& filter) {
    filter.allow("capset");
    for (const int option : {PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_CAP_AMBIENT}) {
        filter.allow("prctl", {equals(0, option)});
    }
}

Result<std::string> build(bool branches) {
    Filter filter;
    for (std::string_view rest = kAllowed; !rest.empty();) {
        const std::size_t space = rest.find(' ');
        filter.allow(rest.substr(0, space));
        rest.remove_prefix(space + 1);
    }
    allow_by_argument(filter);
    allow_sockets(filter);
    answer_zeromq(filter);
    constexpr unsigned kApiWithNotification = 5;  // seccomp_api_get(3)
    if (seccomp_api_get() >= kApiWithNotification) {
        report_refusals(filter);
    }
    if (branches) {
        let_drop(filter);
    }
    for (const char* name : kAnswerNoSuchCall) {
        filter.rule(
            layer_removed("filter_clone3") ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(ENOSYS),
            Filter::number(name),
            {});
    }
    if (layer_removed("filter_sendfile")) {
        filter.allow(kAnswerInvalid);
    } else {
        filter.rule(SCMP_ACT_ERRNO(EINVAL), Filter::number(kAnswerInvalid), {});
    }
    for (const char* name : kAnswerNotSupported) {
        filter.rule(SCMP_ACT_ERRNO(EOPNOTSUPP), Filter::number(name), {});
    }
    for (int call = kFirstUnknownCall; call <= kLastUnknownCall; ++call) {
        filter.rule(SCMP_ACT_ERRNO(ENOSYS), call, {});
    }
    return filter.compile();
}

}  // namespace

Result<std::string> seccomp_program(bool branches) {
    static const Result<std::string> program = build(false);
    if (!branches) {
        return program;
    }
    static const Result<std::string> with_branches = build(true);
    return with_branches;
}

}  // namespace cellkeep::sandbox
