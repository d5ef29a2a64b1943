// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/port_connection.hpp"

#include "sandbox/policy/policy.hpp"
#include "sandbox/shared/descriptor_kind.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

constexpr std::uint32_t kPortMax = 65'535;

/// The way out of the session listens at kProxyPort: it is for what runs inside.
bool is_servable_port(std::uint32_t port) {
    return port >= 1 && port <= kPortMax && (port != kProxyPort || layer_removed("proxy_port"));
}

struct LoopbackAddress {
    sockaddr_storage bytes{};
    socklen_t size = 0;
};

/// Both addresses are constants: no request names another host.
LoopbackAddress loopback_address(Loopback which, std::uint16_t port) {
    LoopbackAddress address;
    if (which == Loopback::kV6) {
        sockaddr_in6 six{};
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(port);
        six.sin6_addr = in6addr_loopback;
        std::memcpy(&address.bytes, &six, sizeof(six));
        address.size = sizeof(six);
    } else {
        sockaddr_in four{};
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        std::memcpy(&address.bytes, &four, sizeof(four));
        address.size = sizeof(four);
    }
    return address;
}

/// The socket, which is connected or about to be; -1 and errno.
int connect_to_loopback(Loopback which, std::uint16_t port) {
    const LoopbackAddress address = loopback_address(which, port);
    const int fd = ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.bytes), address.size) < 0 &&
        errno != EINPROGRESS) {
        const int error = errno;
        (void)::close(fd);  // Ignored: the first failure is the one to report.
        errno = error;
        return -1;
    }
    return fd;
}

}  // namespace

void handle_connect(const ReceivedRequest& request, const RequestHeader& header) {
    if (request.fd_count != 1 ||
        (!is_socket_pair_end(request.fds[0]) && !layer_removed("received_descriptors"))) {
        return;
    }
    ConnectAnswer answer;
    int fd = -1;
    if (is_servable_port(header.port)) {
        fd = connect_to_loopback(header.loopback, static_cast<std::uint16_t>(header.port));
        answer.error = fd < 0 ? errno : 0;
    } else {
        answer.error = EACCES;
    }
    // Ignored: then the server that asked has gone, and sees no answer.
    (void)send_message(request.fds[0], &answer, sizeof(answer), fd, MSG_DONTWAIT);
    if (fd >= 0) {
        (void)::close(fd);  // Ignored: the server has its own copy.
    }
}

}  // namespace cellkeep::sandbox
