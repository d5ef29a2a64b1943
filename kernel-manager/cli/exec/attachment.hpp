// SPDX-License-Identifier: Apache-2.0
//
// A process of a session, shown where a command of ours runs: its output on stdout and stderr, what
// comes on stdin sent to it, sizes and signals passed on. io_context thread only.
#pragma once

#include "kernel-manager/http/websocket/websocket_client.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>

namespace cellkeep::cli {

struct AttachOptions {
    bool terminal = false;  // keys go as they are, and sizes with them
    bool input = false;     // stdin is sent
};

/// Until the process has ended: its exit code. An error if the connection broke.
boost::asio::awaitable<Result<int>> attach_process(
    boost::asio::io_context& io,
    std::shared_ptr<http::WebSocketClient> socket,
    AttachOptions options);

}  // namespace cellkeep::cli
