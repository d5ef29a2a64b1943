// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket between a visitor and a server inside: once both have agreed, bytes in both
// directions, each as fast as its slower end takes them. io_context thread only.
#pragma once

#include "kernel-manager/http/socket/byte_stream.hpp"
#include "kernel-manager/preview/inner_connection.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace cellkeep::preview {

/// Until both ends have said that they send no more, one of them breaks off, or nothing crosses for
/// InnerConnection::patience().idle. What the visitor sends counts as use of the session. Both
/// streams are closed then.
boost::asio::awaitable<void> relay(
    std::shared_ptr<http::ByteStream> visitor, std::shared_ptr<InnerConnection> inner);

}  // namespace cellkeep::preview
