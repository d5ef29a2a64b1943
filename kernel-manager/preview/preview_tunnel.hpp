// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket between a visitor and a server inside: once both have agreed, bytes in both
// directions, each as fast as its slower end takes them. io_context thread only.
#pragma once

#include "kernel-manager/http/socket/byte_stream.hpp"
#include "kernel-manager/preview/inner_connection.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>

namespace cellkeep::preview {

/// How long the server inside may go on when the visitor of a WebSocket has gone.
inline constexpr std::chrono::seconds kTunnelGoodbye{5};

/// Until the server inside closes, one of both breaks off, nothing crosses for
/// InnerConnection::patience().idle, or the visitor has gone and kTunnelGoodbye has passed. What
/// the visitor sends counts as use of the session. The inner connection is closed then, and so is
/// the visitor's, unless the server inside has ended it in order: then its owner closes it.
boost::asio::awaitable<void> relay(
    std::shared_ptr<http::ByteStream> visitor, std::shared_ptr<InnerConnection> inner);

}  // namespace cellkeep::preview
