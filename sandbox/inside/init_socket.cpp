// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/init_socket.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace cellkeep::sandbox {

int send_with_descriptors(
    int socket, const void* bytes, std::size_t size, std::span<const int> fds, int flags) {
    if (fds.size() > kSentFdsMax) {
        return EINVAL;
    }
    iovec part{const_cast<void*>(bytes), size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kSentFdsMax)]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    while (::sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0) {
        if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int send_message(int socket, const void* bytes, std::size_t size, int fd, int flags) {
    const std::span<const int> one(&fd, 1);
    return send_with_descriptors(socket, bytes, size, fd >= 0 ? one : one.first(0), flags);
}

std::size_t receive_request(int socket, ReceivedRequest& request) {
    iovec part{request.bytes.data(), request.bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kRequestFdsMax)]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t got = -1;
    do {
        got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < static_cast<ssize_t>(sizeof(RequestHeader)) ||
        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        return 0;
    }
    request.fd_count = 0;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (count > kRequestFdsMax) {
            return 0;  // The buffer's alignment may have room for one more.
        }
        request.fd_count = count;
        std::memcpy(request.fds.data(), CMSG_DATA(header), request.fd_count * sizeof(int));
    }
    return static_cast<std::size_t>(got);
}

int send_setup_message(int control_fd, const SetupMessage& message, int fd) {
    return send_message(control_fd, &message, sizeof(message), fd, 0);
}

}  // namespace cellkeep::sandbox
