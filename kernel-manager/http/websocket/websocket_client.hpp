// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket to a server, for our own commands (client.hpp). One io_context thread; at most one
// receive() and one send() at a time.
#pragma once

#include "kernel-manager/http/client.hpp"
#include "kernel-manager/http/websocket/websocket.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>

namespace cellkeep::http {

class WebSocketClient {
 public:
    WebSocketClient() = default;
    WebSocketClient(const WebSocketClient&) = delete;
    WebSocketClient& operator=(const WebSocketClient&) = delete;
    virtual ~WebSocketClient() = default;

    /// The next whole message. kUnavailable when the server has closed it or is gone.
    virtual boost::asio::awaitable<Result<WebSocketMessage>> receive() = 0;
    virtual boost::asio::awaitable<Status> send(WebSocketKind kind, std::string data) = 0;
    /// What waits fails.
    virtual void close() = 0;
};

/// kUnavailable if no server answers, shows another certificate or refuses the WebSocket.
boost::asio::awaitable<Result<std::unique_ptr<WebSocketClient>>> open_websocket(
    const ServerAddress& server, std::string target);

}  // namespace cellkeep::http
