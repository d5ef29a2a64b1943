// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/branch/room_keeper.hpp"

#include "sandbox/inside/init_socket.hpp"
#include "sandbox/shared/messages.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

constexpr const char* kUserNamespaces = "sys/user/max_user_namespaces";
constexpr int kKeeperFailed = 70;
/// A bound below this one is a sandbox's; while there is room it is this one. Each branch, and each
/// branch of a branch, takes two.
constexpr long kRoom = 65536;
constexpr const char* kRoomText = "65536";

struct Bound {
    int file = -1;
    std::array<char, 32> before{};  // what it said, a C string; empty: it is not open
};

struct Bounds {
    std::array<Bound, kUserNamespacesAbove> all{};
    std::size_t count = 0;
};

int write_bound(int file, const char* text) {
    return ::pwrite(file, text, std::strlen(text), 0) < 0 ? errno : 0;
}

int open_bounds(Bounds& bounds) {
    for (std::size_t i = 0; i < bounds.count; ++i) {
        Bound& bound = bounds.all[i];
        std::array<char, 32> text{};
        if (::pread(bound.file, text.data(), text.size() - 1, 0) < 0) {
            return errno;
        }
        if (std::strtol(text.data(), nullptr, 10) >= kRoom) {
            continue;
        }
        if (const int error = write_bound(bound.file, kRoomText); error != 0) {
            return error;
        }
        bound.before = text;
    }
    return 0;
}

int close_bounds(Bounds& bounds) {
    int first = 0;
    for (std::size_t i = 0; i < bounds.count; ++i) {
        Bound& bound = bounds.all[i];
        const int error = bound.before[0] == 0 ? 0 : write_bound(bound.file, bound.before.data());
        if (error == 0) {
            bound.before[0] = 0;
        }
        first = first == 0 ? error : first;
    }
    return first;
}

/// One byte, perhaps with a descriptor. False: the other end has gone, or a descriptor was lost.
bool receive_order(int socket, char& order, int& file) {
    iovec part{&order, sizeof(order)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = -1;
    do {
        got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    file = -1;
    const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    if (got == 1 && rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
        std::memcpy(&file, CMSG_DATA(rights), sizeof(file));
    }
    return got == 1 && (message.msg_flags & MSG_CTRUNC) == 0;
}

[[noreturn]] void keep_room(int socket) {
    static Bounds bounds;
    char order = 0;
    int file = -1;
    while (receive_order(socket, order, file)) {
        if (file >= 0) {
            if (bounds.count == bounds.all.size()) {
                ::_exit(kKeeperFailed);
            }
            bounds.all[bounds.count++].file = file;
            continue;
        }
        const auto wanted = static_cast<RoomOrder>(order);
        if (wanted != RoomOrder::kOpen && wanted != RoomOrder::kClose) {
            break;
        }
        const std::int32_t error =
            wanted == RoomOrder::kOpen ? open_bounds(bounds) : close_bounds(bounds);
        // Ignored: the next wait sees that the server is gone.
        (void)::send(socket, &error, sizeof(error), MSG_NOSIGNAL);
    }
    ::_exit(close_bounds(bounds) == 0 ? 0 : kKeeperFailed);
}

}  // namespace

int fork_room_keeper(int& towards) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0) {
        return errno;
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
        // What is open is put back whatever comes.
        sigset_t all;
        if (::sigfillset(&all) < 0 || ::pthread_sigmask(SIG_SETMASK, &all, nullptr) != 0 ||
            ::dup3(ends[1], kLauncherControlFd, O_CLOEXEC) < 0 ||
            ::close_range(kLauncherControlFd + 1, ~0U, 0) < 0) {
            ::_exit(kKeeperFailed);
        }
        keep_room(kLauncherControlFd);
    }
    const int error = pid < 0 ? errno : 0;
    (void)::close(ends[1]);  // Ignored: nothing was written to it.
    towards = ends[0];
    return error;
}

int give_bound(int proc_fd, int towards) {
    const int file = ::openat(proc_fd, kUserNamespaces, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        return errno;
    }
    const char word = 'b';
    const int error = send_message(towards, &word, sizeof(word), file, 0);
    (void)::close(file);  // Ignored: the other process has its own.
    return error;
}

}  // namespace cellkeep::sandbox
