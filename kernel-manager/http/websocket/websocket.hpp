// SPDX-License-Identifier: Apache-2.0
//
// One open WebSocket (RFC 6455) as front ends see it, free of any WebSocket library. The connection
// that it grew out of owns it, answers pings, sends its own (limits::kWebSocketPingInterval) and
// drops a peer that is silent for limits::kWebSocketPongTimeout. One io_context thread; at most one
// receive() and one send() at a time.
#pragma once

#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::http {

/// Close codes (RFC 6455, section 7.4.1; 1012 and 1013 are in the IANA registry). A Jupyter client
/// does not come back after kNormal and kGoingAway, and does after the others.
enum class CloseCode : std::uint16_t {
    kNormal = 1000,
    kGoingAway = 1001,
    kProtocolError = 1002,
    kUnsupportedData = 1003,
    kPolicyViolation = 1008,
    kMessageTooBig = 1009,
    kInternalError = 1011,
    kServiceRestart = 1012,
    kTryAgainLater = 1013,
};

enum class WebSocketKind { kText, kBinary };

struct WebSocketMessage {
    WebSocketKind kind = WebSocketKind::kText;
    /// In the order in which they came. http::read_text() (text_reading.hpp) joins a long message
    /// on another thread. The pieces of a text are valid UTF-8 together.
    std::vector<std::string> pieces;
    /// Counts a long message's bytes as still arriving until it goes. Null: it is a short one.
    std::shared_ptr<void> memory = nullptr;
};

class WebSocket {
 public:
    WebSocket() = default;
    WebSocket(const WebSocket&) = delete;
    WebSocket& operator=(const WebSocket&) = delete;
    virtual ~WebSocket() = default;

    /// The next whole message. kUnavailable once the socket is closed by either side or the peer
    /// stopped answering pings; kLimitExceeded (and the socket closed with kMessageTooBig) past
    /// limits::kFrameBytesMax. kUnavailable, too, for a message that does not arrive within
    /// limits::kHttpBodyTimeout and what its bytes take at limits::kHttpBodyBytesPerSecond, or that
    /// waits for memory longer than limits::kArrivalWaitMax (kTryAgainLater).
    virtual boost::asio::awaitable<Result<WebSocketMessage>> receive() = 0;
    /// One message, gathered from the buffers, which must stay valid until this returns.
    /// kUnavailable if the socket is closed or the peer took nothing for
    /// limits::kWebSocketStallMax.
    virtual boost::asio::awaitable<Status> send(
        WebSocketKind kind, std::vector<boost::asio::const_buffer> pieces) = 0;
    /// From now on every message that send() takes proves its receipt: a ping stands inside it,
    /// before its last bytes (RFC 6455, section 5.4), and the pong says that the peer has read the
    /// message. The callback learns how many messages since this call are proved to be read, in
    /// order; it is called while receive() waits, also on behalf of what arrived before receive()
    /// fails.
    virtual void watch_receipt(std::function<void(std::uint64_t messages)> on_receipt) = 0;
    /// Starts the closing handshake; receive() and send() then fail. Idempotent. The reason is for
    /// people, at most 123 bytes; a longer one is cut.
    virtual void close(CloseCode code, std::string reason) = 0;
    /// The same, but receive() goes on: it gives all that the peer sends before its own close
    /// frame, and fails behind that, or if the peer does not close within
    /// limits::kHttpDrainTimeout.
    virtual void close_and_read_on(CloseCode code, std::string reason) = 0;
};

/// What a handler returns in Response::body, with status 101, to turn its connection into a
/// WebSocket. The handler must have seen request.websocket. When `run` ends the socket is closed
/// (kNormal, if it is still open). `run` must end soon after receive() fails.
struct WebSocketUpgrade {
    /// One of request.websocket->protocols, or empty: none is selected.
    std::string protocol;
    std::function<boost::asio::awaitable<void>(std::shared_ptr<WebSocket>)> run;
    /// Listener::pause() leaves it open. The caller of pause() has it closed in the end.
    bool outlasts_pause = false;
};

/// What a request that asks for a WebSocket offers.
struct WebSocketOffer {
    std::vector<std::string> protocols;  // in the client's order of preference
};

}  // namespace cellkeep::http
