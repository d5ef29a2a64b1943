// SPDX-License-Identifier: Apache-2.0
//
// The WebSocket that a connection owns: what front ends see of it (http/websocket.hpp), and what
// its owner needs to watch and end it. The WebSocket library is in websocket_session.cpp only. It
// keeps itself alive while the library works on it.
#pragma once

#include "kernel-manager/http/connection/arrival_memory.hpp"
#include "kernel-manager/http/listener.hpp"
#include "kernel-manager/http/message/headers.hpp"
#include "kernel-manager/http/socket/byte_stream.hpp"
#include "kernel-manager/http/websocket/websocket.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace cellkeep::http {

/// What is answered to a handshake that was found well-formed.
struct WebSocketAnswer {
    std::string key;       // Sec-WebSocket-Key, as sent
    std::string protocol;  // the one selected, or empty
    Headers headers;       // more of the answer's
};

class WebSocketSession : public WebSocket {
 public:
    /// Writes the 101 answer. Null if the peer did not take it. The stream must be the session's
    /// alone from here on. memory: for messages that are arriving.
    static boost::asio::awaitable<std::shared_ptr<WebSocketSession>> accept(
        std::shared_ptr<ByteStream> stream,
        WebSocketAnswer answer,
        const ConnectionLimits& limits,
        ArrivalMemory::Claim memory);

    /// Pings if it is time to, and cuts a peer that is silent, takes nothing, or does not answer a
    /// close frame within drain_timeout. Call it every sweep_period.
    virtual void tick(std::chrono::steady_clock::time_point now) = 0;
    /// Closes it if it is open, and waits until that is done.
    virtual boost::asio::awaitable<void> finish() = 0;
};

}  // namespace cellkeep::http
