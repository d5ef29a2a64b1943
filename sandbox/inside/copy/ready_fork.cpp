// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/ready_fork.hpp"

#include "sandbox/shared/sleep_messages.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

constexpr int kNoPlace = 70;

}  // namespace

long make_ready_fork(
    ReadyFork& ready, const ThreadNotes& notes, bool renumber, int own_socket) noexcept {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) < 0) {
        return -errno;
    }
    const pid_t number = clone_process(notes, {.sibling = true, .renumber = renumber});
    const int error = errno;
    if (number == 0) {
        // The server's socket goes with that: its end of file has to be the copy's end.
        if (::dup3(pair[1], own_socket, O_CLOEXEC) < 0) {
            ::_exit(kNoPlace);
        }
        (void)::close(pair[0]);  // Ignored, here and below: nothing was written to it.
        (void)::close(pair[1]);
        return 0;
    }
    (void)::close(pair[1]);
    if (number < 0) {
        (void)::close(pair[0]);
        return -error;
    }
    ready = {pair[0], number};
    return number;
}

pid_t use_ready_fork(
    ReadyFork& ready, std::span<const std::byte> message, std::span<const int> fds) noexcept {
    iovec part{const_cast<std::byte*>(message.data()), message.size()};  // sendmsg(2) only reads it
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kWakeFds)> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * kWakeFds);
    std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * kWakeFds);
    ssize_t sent = -1;
    do {
        sent = ::sendmsg(ready.socket, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    const pid_t number = ready.number;
    // Ignored: what was sent can be read nevertheless.
    forget_ready_fork(ready);
    return sent == static_cast<ssize_t>(message.size()) ? number : 0;
}

void end_ready_fork(ReadyFork& ready) noexcept {
    if (ready.socket < 0) {
        return;
    }
    // Ignored: it fails if the fork has ended.
    (void)::shutdown(ready.socket, SHUT_WR);
    // A process lets go of its memory before its files, so the end of the file is the end of both.
    char nothing = 0;
    while (::recv(ready.socket, &nothing, 1, 0) < 0 && errno == EINTR) {
    }
    forget_ready_fork(ready);
}

void forget_ready_fork(ReadyFork& ready) noexcept {
    if (ready.socket >= 0) {
        (void)::close(ready.socket);  // Ignored: nothing is in it that anybody waits for.
    }
    ready = {};
}

}  // namespace cellkeep::sandbox
