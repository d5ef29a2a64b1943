// SPDX-License-Identifier: Apache-2.0
//
// The hostile program: `probe <primitive> [argument …]` tries one thing and prints "ok" or the
// errno's name. Tests run it inside a
// sandbox, and outside as the positive control. Static and without sanitizers, so that it needs
// nothing from the sandbox. It tries whether a door is open and never goes through: what could harm
// the host when the control succeeds is called with arguments that fail later than the permission
// check.
#include "tests/sandbox/probe.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

using cellkeep::probe::Arguments;
using cellkeep::probe::Primitive;

int errno_of(long rc) {
    return rc < 0 ? errno : 0;
}

long number(const Arguments& arguments, std::size_t index) {
    return index < arguments.size() ? std::strtol(arguments[index].c_str(), nullptr, 0) : 0;
}

/// Runs try_it in a child, so that what it changes is gone afterwards.
template <typename Try>
int in_probe_child(Try try_it) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::_exit(try_it());
    }
    int status = 0;
    return pid < 0 || ::waitpid(pid, &status, 0) < 0 ? errno
           : WIFEXITED(status)                       ? WEXITSTATUS(status)
                                                     : EINTR;
}

int try_unshare(const Arguments& arguments) {
    return in_probe_child(
        [&] { return errno_of(::unshare(static_cast<int>(number(arguments, 0)))); });
}

int try_clone(const Arguments& arguments) {
    const long flags = number(arguments, 0) | SIGCHLD;
    const long pid = ::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr);
    if (pid == 0) {
        ::_exit(0);
    }
    return errno_of(pid);
}

int try_setns(const Arguments&) {
    const int fd = ::open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? errno : in_probe_child([&] { return errno_of(::setns(fd, 0)); });
}

int try_open(const Arguments& arguments) {
    const std::string& mode = arguments.at(1);
    const int flags = mode == "r" ? O_RDONLY : mode == "w" ? O_WRONLY : O_RDWR;
    return errno_of(::open(arguments.at(0).c_str(), flags | O_CLOEXEC | O_NONBLOCK));
}

int try_socket(const Arguments& arguments) {
    return errno_of(::socket(
        static_cast<int>(number(arguments, 0)),
        static_cast<int>(number(arguments, 1)),
        static_cast<int>(number(arguments, 2))));
}

int try_connect_tcp(const Arguments& arguments) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(number(arguments, 0)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return errno_of(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
}

int try_connect_abstract(const Arguments& arguments) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& name = arguments.at(0);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return errno_of(::connect(fd, reinterpret_cast<sockaddr*>(&address), size));
}

int try_setsockopt(const Arguments& arguments) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int value = -1;
    return errno_of(::setsockopt(
        fd,
        static_cast<int>(number(arguments, 0)),
        static_cast<int>(number(arguments, 1)),
        &value,
        sizeof(value)));
}

int try_send_oob(const Arguments&) {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) < 0) {
        return errno;
    }
    return errno_of(::send(pair[0], "x", 1, MSG_OOB));
}

int try_ptrace_traceme(const Arguments&) {
    return in_probe_child([] { return errno_of(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); });
}

int try_ptrace_attach(const Arguments&) {
    const pid_t child = ::fork();
    if (child == 0) {
        (void)::pause();
        ::_exit(0);
    }
    const int error = errno_of(::ptrace(PTRACE_ATTACH, child, nullptr, nullptr));
    (void)::kill(child, SIGKILL);
    (void)::waitpid(child, nullptr, __WALL);
    return error;
}

int try_process_vm(const Arguments&) {
    char from = 'x';
    char to = 0;
    const iovec local{&to, 1};
    const iovec remote{&from, 1};
    return errno_of(::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0));
}

int try_pidfd_getfd(const Arguments&) {
    const long pidfd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
    return pidfd < 0 ? errno : errno_of(::syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

int try_kcmp(const Arguments&) {
    return errno_of(::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, 0, 0));
}

int try_io_uring(const Arguments&) {
    std::array<char, 256> parameters{};
    return errno_of(::syscall(SYS_io_uring_setup, 1, parameters.data()));
}

int try_bpf(const Arguments&) {
    bpf_attr attr{};
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = 4;
    attr.value_size = 4;
    attr.max_entries = 1;
    return errno_of(::syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

int try_perf(const Arguments&) {
    perf_event_attr attr{};
    attr.type = PERF_TYPE_SOFTWARE;
    attr.size = sizeof(attr);
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    return errno_of(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

int try_keyctl(const Arguments&) {
    return errno_of(::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 1));
}

int try_add_key(const Arguments&) {
    // The thread's own keyring: gone with this process.
    return errno_of(::syscall(SYS_add_key, "user", "cellkeep-probe", "x", 1UL, -1));
}

/// A user key named by argument 1 in the keyring of argument 0 (-3: session, -4: user).
int try_plant_key(const Arguments& arguments) {
    return errno_of(
        ::syscall(SYS_add_key, "user", arguments.at(1).c_str(), "x", 1UL, number(arguments, 0)));
}

int try_find_key(const Arguments& arguments) {
    return errno_of(::syscall(
        SYS_keyctl, KEYCTL_SEARCH, number(arguments, 0), "user", arguments.at(1).c_str(), 0));
}

/// Every "keep capabilities out" bit, locked (capabilities(7)): "ok", or what is there instead.
int try_securebits(const Arguments&) {
    constexpr int kWanted = 1 | 2 | 4 | 8 | 32 | 64 | 128;
    const int bits = ::prctl(PR_GET_SECUREBITS);
    return bits < 0 ? errno : (bits & kWanted) == kWanted ? 0 : ENODATA;
}

int try_ioctl(const Arguments& arguments) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    std::array<char, 256> buffer{};
    const auto command = std::strtoul(arguments.at(0).c_str(), nullptr, 0);
    return errno_of(::syscall(SYS_ioctl, fd, command, buffer.data()));
}

int try_mknod_device(const Arguments& arguments) {
    const std::string path = arguments.at(0) + "/cellkeep-probe-" + std::to_string(::getpid());
    const int error = errno_of(::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)));
    (void)::unlink(path.c_str());
    return error;
}

int try_lease(const Arguments& arguments) {
    const std::string path = arguments.at(0) + "/cellkeep-probe-" + std::to_string(::getpid());
    const int fd = ::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    const int error = fd < 0 ? errno : errno_of(::fcntl(fd, F_SETLEASE, F_RDLCK));
    (void)::unlink(path.c_str());
    return error;
}

int try_vmsplice(const Arguments&) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
        return errno;
    }
    char byte = 'x';
    const iovec part{&byte, 1};
    return errno_of(::vmsplice(ends[1], &part, 1, 0));
}

int try_splice(const Arguments&) {  // between pipes: Linux 5.10 to 6.4 has none from /dev/zero
    std::array<int, 4> ends{};
    if (::pipe2(&ends[0], O_CLOEXEC) < 0 || ::pipe2(&ends[2], O_CLOEXEC) < 0 ||
        ::write(ends[1], "x", 1) != 1) {
        return errno;
    }
    return errno_of(::splice(ends[0], nullptr, ends[3], nullptr, 1, 0));
}

int try_int80(const Arguments&) {
#if defined(__x86_64__)
    long result = 20;  // getpid of i386
    asm volatile("int $0x80" : "+a"(result) : : "memory");
    return result < 0 ? static_cast<int>(-result) : 0;
#else
    return ENOSYS;
#endif
}

int try_fifo_scheduler(const Arguments&) {
    return in_probe_child([] {
        const sched_param parameter{1};
        return errno_of(::sched_setscheduler(0, SCHED_FIFO, &parameter));
    });
}

int try_seccomp(const Arguments&) {
    const std::uint32_t action = SECCOMP_RET_ALLOW;
    return errno_of(::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
}

int try_prlimit_other(const Arguments& arguments) {
    rlimit now{};
    const auto pid = static_cast<pid_t>(number(arguments, 0));
    return errno_of(::prlimit(pid, RLIMIT_NOFILE, nullptr, &now));
}

int try_handle(const Arguments&) {
    alignas(file_handle) char bytes[sizeof(file_handle) + MAX_HANDLE_SZ]{};
    auto* handle = reinterpret_cast<file_handle*>(bytes);
    handle->handle_bytes = MAX_HANDLE_SZ;
    int mount_id = 0;
    return errno_of(::name_to_handle_at(AT_FDCWD, "/usr", handle, &mount_id, 0));
}

/// Any call by number with up to four numeric arguments.
int try_syscall(const Arguments& arguments) {
    return in_probe_child([&] {
        return errno_of(::syscall(
            number(arguments, 0),
            number(arguments, 1),
            number(arguments, 2),
            number(arguments, 3),
            number(arguments, 4)));
    });
}

int try_kill(const Arguments& arguments) {
    return errno_of(::kill(static_cast<pid_t>(number(arguments, 0)), 0));
}

int try_mount(const Arguments&) {
    return errno_of(::mount("none", "/nonexistent-probe", "tmpfs", 0, nullptr));
}

int try_fsopen(const Arguments& arguments) {
    return errno_of(::fsopen(arguments.at(0).c_str(), FSOPEN_CLOEXEC));
}

int try_open_tree(const Arguments&) {
    return errno_of(::open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

int try_chroot(const Arguments&) {
    return errno_of(::chroot("/"));
}

int try_personality(const Arguments& arguments) {
    return in_probe_child(
        [&] { return errno_of(::personality(static_cast<unsigned long>(number(arguments, 0)))); });
}

int try_fanotify(const Arguments&) {
    return errno_of(::fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY));
}

constexpr std::array kPrimitives{
    Primitive{"unshare", try_unshare},
    Primitive{"clone", try_clone},
    Primitive{"setns", try_setns},
    Primitive{"open", try_open},
    Primitive{"socket", try_socket},
    Primitive{"connect_tcp", try_connect_tcp},
    Primitive{"connect_abstract", try_connect_abstract},
    Primitive{"setsockopt", try_setsockopt},
    Primitive{"send_oob", try_send_oob},
    Primitive{"ptrace_traceme", try_ptrace_traceme},
    Primitive{"ptrace_attach", try_ptrace_attach},
    Primitive{"process_vm", try_process_vm},
    Primitive{"pidfd_getfd", try_pidfd_getfd},
    Primitive{"kcmp", try_kcmp},
    Primitive{"io_uring", try_io_uring},
    Primitive{"bpf", try_bpf},
    Primitive{"perf", try_perf},
    Primitive{"keyctl", try_keyctl},
    Primitive{"add_key", try_add_key},
    Primitive{"plant_key", try_plant_key},
    Primitive{"find_key", try_find_key},
    Primitive{"securebits", try_securebits},
    Primitive{"ioctl", try_ioctl},
    Primitive{"mknod_device", try_mknod_device},
    Primitive{"lease", try_lease},
    Primitive{"vmsplice", try_vmsplice},
    Primitive{"splice", try_splice},
    Primitive{"int80", try_int80},
    Primitive{"fifo_scheduler", try_fifo_scheduler},
    Primitive{"seccomp", try_seccomp},
    Primitive{"prlimit_other", try_prlimit_other},
    Primitive{"handle", try_handle},
    Primitive{"syscall", try_syscall},
    Primitive{"kill", try_kill},
    Primitive{"mount", try_mount},
    Primitive{"fsopen", try_fsopen},
    Primitive{"open_tree", try_open_tree},
    Primitive{"chroot", try_chroot},
    Primitive{"personality", try_personality},
    Primitive{"fanotify", try_fanotify}};

}  // namespace

namespace cellkeep::probe {

std::span<const Primitive> primitives() {
    return kPrimitives;
}

}  // namespace cellkeep::probe
