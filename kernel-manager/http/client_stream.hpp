// SPDX-License-Identifier: Apache-2.0
//
// What our own clients of a server share: the connection and its errors. For client.cpp and
// websocket/websocket_client.cpp; others see no HTTP library.
#pragma once

#include "kernel-manager/http/client.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/system/error_code.hpp>

#include <string>

namespace cellkeep::http {

using ClientStream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;

/// A type of its own: Asio makes an endpoint of anything that has an address.
struct Place {
    boost::asio::generic::stream_protocol::endpoint endpoint;
};

std::string text_of(const ServerAddress& server);
Error client_error(const boost::system::error_code& error, const ServerAddress& server);
/// kInvalidArgument if the host is no address or the path is too long for a socket (unix(7)).
Result<Place> endpoint_of(const ServerAddress& server);

}  // namespace cellkeep::http
