// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket without a network: the test plays the client.
#pragma once

#include "kernel-manager/http/websocket/websocket.hpp"
#include "protocol/message.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::jupyter::test {

class FakeSocket : public http::WebSocket {
 public:
    explicit FakeSocket(boost::asio::io_context& io);

    // --- what the client does
    void say(http::WebSocketKind kind, std::string data);
    void say(const protocol::Message& message);
    /// Takes nothing until it reads again.
    void pause() { paused_ = true; }
    void read_on();
    /// Proves that the client has read this many messages.
    void prove(std::uint64_t messages) const { on_receipt_(messages); }
    /// The connection is gone; or the client has closed it.
    void cut();

    // --- what the server did
    struct Got {
        http::WebSocketKind kind;
        std::string data;
    };
    std::vector<Got> got;
    /// The v1 messages among them, as texts (text_of()).
    std::vector<std::string> texts() const;
    std::vector<protocol::Message> messages() const;
    std::optional<http::CloseCode> closed;
    std::optional<http::CloseCode> asked_to_leave;
    std::string reason;

    boost::asio::awaitable<Result<http::WebSocketMessage>> receive() override;
    boost::asio::awaitable<Status> send(
        http::WebSocketKind kind, std::vector<boost::asio::const_buffer> pieces) override;
    void watch_receipt(std::function<void(std::uint64_t)> on_receipt) override;
    void close(http::CloseCode code, std::string why) override;
    void close_and_read_on(http::CloseCode code, std::string why) override;

 private:
    std::deque<http::WebSocketMessage> incoming_;
    boost::asio::steady_timer arrival_;
    boost::asio::steady_timer room_;
    std::function<void(std::uint64_t)> on_receipt_;
    bool paused_ = false;
    bool gone_ = false;
};

}  // namespace cellkeep::jupyter::test
