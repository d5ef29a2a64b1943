// SPDX-License-Identifier: Apache-2.0
#include "sandbox/shared/descriptor_kind.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

namespace cellkeep::sandbox {

namespace {

/// UNIX98_PTY_SLAVE_MAJOR and the seven behind it (linux/major.h).
constexpr unsigned kTerminalMajorFirst = 136;
constexpr unsigned kTerminalMajorLast = 143;

/// -1 if it cannot be asked.
int socket_option(int fd, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

}  // namespace

bool is_output(int fd) noexcept {
    struct stat info {};
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fstat(fd, &info) < 0 || (flags & O_PATH) != 0 ||
        (flags & O_ACCMODE) != O_WRONLY) {
        return false;
    }
    return S_ISFIFO(info.st_mode) || (S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3));
}

bool is_input(int fd) noexcept {
    struct stat info {};
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ::fstat(fd, &info) == 0 && (flags & O_PATH) == 0 &&
           (flags & O_ACCMODE) == O_RDONLY && S_ISFIFO(info.st_mode);
}

bool is_terminal(int fd) noexcept {
    struct stat info {};
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ::fstat(fd, &info) == 0 && (flags & O_PATH) == 0 &&
           (flags & O_ACCMODE) == O_RDWR && S_ISCHR(info.st_mode) &&
           major(info.st_rdev) >= kTerminalMajorFirst && major(info.st_rdev) <= kTerminalMajorLast;
}

bool is_socket_pair_end(int fd) noexcept {
    const int type = socket_option(fd, SO_TYPE);
    if (socket_option(fd, SO_DOMAIN) != AF_UNIX || socket_option(fd, SO_ACCEPTCONN) != 0 ||
        (type != SOCK_STREAM && type != SOCK_SEQPACKET)) {
        return false;
    }
    // The ends of a socketpair(2) have no names; a peer that was found by name has (unix(7)).
    sockaddr_un peer{};
    socklen_t size = sizeof(peer);
    return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
           size == sizeof(sa_family_t);
}

}  // namespace cellkeep::sandbox
