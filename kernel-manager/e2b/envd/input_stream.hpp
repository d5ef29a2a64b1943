// SPDX-License-Identifier: Apache-2.0
//
// Input for a command as a stream of messages (process.Process/StreamInput): it is passed on as it
// comes, and as the command takes it. io_context thread only.
#pragma once

#include "kernel-manager/e2b/wire/rpc.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"

#include <boost/asio/awaitable.hpp>

namespace cellkeep::e2b {

/// Of a route that streams.
boost::asio::awaitable<http::Response> take_input_stream(
    http::Request& request, RpcSession session);

}  // namespace cellkeep::e2b
