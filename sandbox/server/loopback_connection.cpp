// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/loopback_connection.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/server/init_channel.hpp"
#include "sandbox/shared/messages.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace cellkeep::sandbox {

namespace {

Error connection_failure(int error) {
    const std::string what = Error::from_errno(error, "connect").message();
    switch (error) {
        case ECONNREFUSED:
        case EADDRNOTAVAIL:  // the host has no IPv6, or no ::1
        case EAFNOSUPPORT:
            return {ErrorCode::kNotFound, what};
        case EACCES:
            return {ErrorCode::kPermissionDenied, what};
        case ETIMEDOUT:
            return {ErrorCode::kTimeout, what};
        default:
            return {ErrorCode::kUnavailable, what};
    }
}

/// The kernel may choose the very port that is asked for as the socket's own; then it is connected
/// to itself (tcp(7), simultaneous open).
bool is_its_own_peer(int socket) {
    // Both families have the port at the same place.
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    sockaddr_in6 own{};
    sockaddr_in6 peer{};
    socklen_t own_size = sizeof(own);
    socklen_t peer_size = sizeof(peer);
    return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
           ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
           own.sin6_port == peer.sin6_port;
}

}  // namespace

Result<UniqueFd> ask_for_connection(InitChannel& channel, std::uint16_t port, Loopback address) {
    BOOST_OUTCOME_TRY(auto ends, make_socket_pair(SOCK_SEQPACKET));
    BOOST_OUTCOME_TRY(set_nonblocking(ends.first.get()));
    RequestHeader header;
    header.kind = RequestKind::kConnect;
    header.port = port;
    header.loopback = address;
    const int inside = ends.second.get();
    BOOST_OUTCOME_TRY(with_context(channel.send(header, "", std::span(&inside, 1)), "connect"));
    return std::move(ends.first);
}

Result<std::optional<UniqueFd>> take_connection(int answer_fd) {
    ConnectAnswer answer;
    auto received = receive_with_fds(answer_fd, std::as_writable_bytes(std::span(&answer, 1)));
    if (received.has_error()) {
        if (received.error().code() == ErrorCode::kUnavailable) {
            return std::optional<UniqueFd>();
        }
        return std::move(received).error();
    }
    if (received.value().bytes != sizeof(answer)) {
        return Error(ErrorCode::kUnavailable, "connect: the sandbox gives no answer");
    }
    if (answer.error != 0) {
        return connection_failure(answer.error);
    }
    if (received.value().fds.size() != 1) {
        return Error(ErrorCode::kProtocol, "connect: pid 1 sent no socket");
    }
    return std::optional(std::move(received.value().fds[0]));
}

Status check_connection(int socket) {
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) < 0) {
        error = errno;
    }
    if (error == 0 && is_its_own_peer(socket)) {
        error = ECONNREFUSED;
    }
    return error == 0 ? Status(ok()) : Status(connection_failure(error));
}

}  // namespace cellkeep::sandbox
