// SPDX-License-Identifier: Apache-2.0
//
// A process of a session, shown where a command of ours runs: its output on stdout and stderr, what
// comes on stdin sent to it, sizes and signals passed on. io_context thread only.
#pragma once

#include "kernel-manager/http/websocket/websocket_client.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace cellkeep::cli {

struct AttachOptions {
    bool terminal = false;  // keys go as they are, and sizes with them
    bool input = false;     // stdin is sent
    /// Another connection to the same process, for its output behind so many bytes.
    std::function<boost::asio::awaitable<Result<std::shared_ptr<http::WebSocketClient>>>(
        std::uint64_t)>
        reopen;
};

/// How often it connects again without having learned anything in between.
inline constexpr int kReattachMax = 5;

/// Until the process has ended: its exit code. A server whose program is replaced closes its
/// connections: then it goes on over another one, without a gap in the output. What was sent in the
/// moment of the close may not have been read. An error if there is no other connection.
boost::asio::awaitable<Result<int>> attach_process(
    boost::asio::io_context& io,
    std::shared_ptr<http::WebSocketClient> socket,
    AttachOptions options);

}  // namespace cellkeep::cli
