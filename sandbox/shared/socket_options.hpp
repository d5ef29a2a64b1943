// SPDX-License-Identifier: Apache-2.0
//
// The socket options that code inside may set and ask for (socket(7), tcp(7), ip(7)).
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>

namespace cellkeep::sandbox {

struct SocketOption {
    int level;
    int name;
};
inline constexpr std::array kSetOptions{
    SocketOption{SOL_SOCKET, SO_REUSEADDR},
    SocketOption{SOL_SOCKET, SO_REUSEPORT},
    SocketOption{SOL_SOCKET, SO_BROADCAST},
    SocketOption{SOL_SOCKET, SO_KEEPALIVE},
    SocketOption{SOL_SOCKET, SO_LINGER},
    SocketOption{SOL_SOCKET, SO_RCVTIMEO},
    SocketOption{SOL_SOCKET, SO_SNDTIMEO},
    SocketOption{SOL_SOCKET, SO_PASSCRED},
    SocketOption{IPPROTO_TCP, TCP_NODELAY},
    SocketOption{IPPROTO_TCP, TCP_CORK},
    SocketOption{IPPROTO_TCP, TCP_KEEPIDLE},
    SocketOption{IPPROTO_TCP, TCP_KEEPINTVL},
    SocketOption{IPPROTO_TCP, TCP_KEEPCNT},
    SocketOption{IPPROTO_TCP, TCP_DEFER_ACCEPT},
    SocketOption{IPPROTO_TCP, TCP_QUICKACK},
    SocketOption{IPPROTO_TCP, TCP_USER_TIMEOUT},
    SocketOption{IPPROTO_IPV6, IPV6_V6ONLY},
    SocketOption{IPPROTO_IP, IP_TOS},
    SocketOption{IPPROTO_IP, IP_RECVERR}};
/// The size of a buffer is a wish, which the kernel cuts to the host's maximum (socket(7)). Ours is
/// the default: larger ones hold what no cgroup is charged for, until a process accepts.
inline constexpr std::array kIgnoredOptions{
    SocketOption{SOL_SOCKET, SO_SNDBUF}, SocketOption{SOL_SOCKET, SO_RCVBUF}};
/// By name: SO_PEERPIDFD (Linux 6.5) would make a handle to the server out of the link to it.
inline constexpr std::array kGetOptions{
    SocketOption{SOL_SOCKET, SO_TYPE},       SocketOption{SOL_SOCKET, SO_ERROR},
    SocketOption{SOL_SOCKET, SO_DOMAIN},     SocketOption{SOL_SOCKET, SO_PROTOCOL},
    SocketOption{SOL_SOCKET, SO_ACCEPTCONN}, SocketOption{SOL_SOCKET, SO_SNDBUF},
    SocketOption{SOL_SOCKET, SO_RCVBUF},     SocketOption{SOL_SOCKET, SO_REUSEADDR},
    SocketOption{SOL_SOCKET, SO_REUSEPORT},  SocketOption{SOL_SOCKET, SO_KEEPALIVE},
    SocketOption{SOL_SOCKET, SO_LINGER},     SocketOption{SOL_SOCKET, SO_BROADCAST},
    SocketOption{SOL_SOCKET, SO_RCVTIMEO},   SocketOption{SOL_SOCKET, SO_SNDTIMEO},
    SocketOption{SOL_SOCKET, SO_PASSCRED},   SocketOption{SOL_SOCKET, SO_PEERCRED},
    SocketOption{IPPROTO_TCP, TCP_NODELAY},  SocketOption{IPPROTO_TCP, TCP_INFO},
    SocketOption{IPPROTO_TCP, TCP_MAXSEG},   SocketOption{IPPROTO_IPV6, IPV6_V6ONLY}};

}  // namespace cellkeep::sandbox
