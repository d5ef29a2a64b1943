// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/network_setup.hpp"

#include "sandbox/inside/init_socket.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace cellkeep::sandbox {

namespace {

/// What one connection that is not accepted yet may hold. The memory is charged to the server.
constexpr int kProxyBufferBytes = 256 * 1024;

int write_own(const char* path, const char* text) {
    const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    const int error = ::write(fd, text, std::strlen(text)) < 0 ? errno : 0;
    (void)::close(fd);  // Ignored: the write has already succeeded or failed.
    return error;
}

/// proc_fd: -1 is this mount namespace's own /proc.
int write_beneath(int proc_fd, const char* path, const char* text) {
    char whole[64];
    (void)std::snprintf(whole, sizeof(whole), "%s%s", proc_fd < 0 ? "/proc/" : "", path);
    const int fd = ::openat(proc_fd, whole, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    const int error = ::write(fd, text, std::strlen(text)) < 0 ? errno : 0;
    (void)::close(fd);  // Ignored: the write has already succeeded or failed.
    return error;
}

/// A change of user namespace made this process undumpable, and its maps root's (proc(5)), and took
/// the death signal away (prctl(2)).
int be_ourselves_again() {
    return ::prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0 ||
                   ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L) < 0
               ? errno
               : 0;
}

/// Root of a container with a user namespace of its own counts as an ordinary user, as in
/// host_mode.cpp: the initial user namespace maps every id to itself (user_namespaces(7)).
bool is_root_of_the_host() {
    if (::geteuid() != 0) {
        return false;
    }
    const int fd = ::open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    char text[128]{};
    const ssize_t size = ::read(fd, text, sizeof(text) - 1);
    (void)::close(fd);  // Ignored: it was only read.
    unsigned inside = 1;
    unsigned outside = 1;
    unsigned count = 0;
    return size > 0 && std::sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 &&
           inside == 0 && outside == 0 && count == 0xffff'ffffU;
}

/// One user namespace for one network namespace, with this user's ids mapped to themselves: the
/// user who makes a user namespace has to exist in the one above it (user_namespaces(7)).
int make_owner() {
    char uid_map[64];
    char gid_map[64];
    (void)std::snprintf(uid_map, sizeof(uid_map), "%u %u 1", ::geteuid(), ::geteuid());
    (void)std::snprintf(gid_map, sizeof(gid_map), "%u %u 1", ::getegid(), ::getegid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
        return errno;
    }
    int error = be_ourselves_again();
    if (error == 0 && (error = write_own("/proc/self/setgroups", "deny")) == 0 &&
        (error = write_own("/proc/self/uid_map", uid_map)) == 0) {
        error = write_own("/proc/self/gid_map", gid_map);
    }
    return error;
}

int send_descriptor(int control_fd, SetupMessageKind kind, int fd, int error) {
    SetupMessage message;
    message.error = error;
    message.kind = kind;
    return send_setup_message(control_fd, message, fd);
}

}  // namespace

int bring_up_loopback() {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    ifreq request{};
    std::memcpy(request.ifr_name, "lo", sizeof("lo"));
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    const int error = ::ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? errno : 0;
    (void)::close(fd);  // Ignored: nothing was sent through it.
    return error;
}

int bound_socket_memory(int proc_fd, int& missing) {
    missing = 0;
    if (layer_removed("socket_memory")) {
        return 0;
    }
    // Each belongs to the network namespace (tcp(7); Documentation/networking/ip-sysctl.rst). The
    // kernel clamps the backlog of listen(2) to the first.
    for (const auto& [path, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"sys/net/core/somaxconn", "128"},
             {"sys/net/ipv4/tcp_rmem", "4096 65536 131072"},
             {"sys/net/ipv4/tcp_wmem", "4096 65536 131072"},
             {"sys/net/ipv4/tcp_max_tw_buckets", "1024"}}) {
        const int error = write_beneath(proc_fd, path, value);
        // Read-only or masked in most containers, and older kernels (6.1) show an ordinary user no
        // somaxconn; the isolation report says so (assembly.cpp).
        if (error == EROFS || error == ENOENT) {
            missing = error;
        } else if (error != 0) {
            return error;
        }
    }
    return 0;
}

int make_proxy_listener(int& listener_fd) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(kProxyPort);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // Accepted sockets inherit the size (tcp(7)).
    if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kProxyBufferBytes, sizeof(kProxyBufferBytes)) <
            0 ||
        ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0 ||
        ::listen(fd, kProxyBacklog) < 0) {
        const int error = errno;
        (void)::close(fd);  // Ignored: the first failure is the one to report.
        return error;
    }
    listener_fd = fd;
    return 0;
}

int make_network_here(std::int32_t& missing, int* listener_fd, SetupStep& step) {
    step = SetupStep::kMakeNetwork;
    if (::unshare(CLONE_NEWNET) < 0) {
        return errno;
    }
    step = SetupStep::kLoopback;
    int error = bring_up_loopback();
    if (error != 0) {
        return error;
    }
    step = SetupStep::kSocketMemory;
    if ((error = bound_socket_memory(-1, missing)) != 0 || listener_fd == nullptr) {
        return error;
    }
    step = SetupStep::kProxyListener;
    return make_proxy_listener(*listener_fd);
}

int make_network(int control_fd, SetupStep& step) {
    step = SetupStep::kMakeNetwork;
    // Root's namespaces belong to the host's user namespace.
    int error = !is_root_of_the_host() ? make_owner() : ::unshare(CLONE_NEWNET) < 0 ? errno : 0;
    if (error != 0) {
        return error;
    }
    const int network_fd = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (network_fd < 0) {
        return errno;
    }
    step = SetupStep::kLoopback;
    if ((error = bring_up_loopback()) != 0) {
        return error;
    }
    step = SetupStep::kSocketMemory;
    int missing = 0;
    if ((error = bound_socket_memory(-1, missing)) != 0) {
        return error;
    }
    step = SetupStep::kProxyListener;
    int listener_fd = -1;
    if ((error = make_proxy_listener(listener_fd)) != 0 ||
        (error = send_descriptor(control_fd, SetupMessageKind::kNetwork, network_fd, missing)) !=
            0) {
        return error;
    }
    return send_descriptor(control_fd, SetupMessageKind::kListener, listener_fd, 0);
}

int enter_network(int network_fd, bool privileged) {
    if (!privileged) {
        const int owner = ::ioctl(network_fd, NS_GET_USERNS);
        if (owner < 0 || ::setns(owner, CLONE_NEWUSER) < 0) {
            return errno;
        }
        (void)::close(owner);  // Ignored: it was entered.
        if (const int error = be_ourselves_again(); error != 0) {
            return error;
        }
    }
    return ::setns(network_fd, CLONE_NEWNET) < 0 ? errno : 0;
}

}  // namespace cellkeep::sandbox
