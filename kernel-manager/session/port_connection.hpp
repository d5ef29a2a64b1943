// SPDX-License-Identifier: Apache-2.0
//
// A connection to a server that code has started inside, from pid 1's answer to a connected socket.
// io_context thread only.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>

namespace cellkeep::session {

/// How long a server inside may take to let a connection in, pid 1's answer included. One that has
/// as many waiting as it wants (listen(2)) lets none in.
inline constexpr std::chrono::seconds kPortConnectPatience{5};

/// answer: of Sandbox::begin_connection(). The socket that is returned does not block. kNotFound:
/// nothing listens there; kPermissionDenied: the port is the sandbox's own; kTimeout: not within
/// the patience; kUnavailable: the sandbox is gone.
boost::asio::awaitable<Result<UniqueFd>> finish_port_connection(
    UniqueFd answer, std::chrono::milliseconds patience);

}  // namespace cellkeep::session
