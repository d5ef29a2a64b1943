// SPDX-License-Identifier: Apache-2.0
//
// A blocking WebSocket client for tests. The library is in websocket_client.cpp only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::http::test {

/// The header lines of a well-formed handshake: the key is that of RFC 6455, section 1.3.
std::string handshake_headers();

class WebSocketClient {
 public:
    /// Offers the protocols of a comma-separated list. The test fails if the server refuses.
    WebSocketClient(
        std::uint16_t port, const std::string& target, const std::string& protocols = {});
    ~WebSocketClient();
    WebSocketClient(const WebSocketClient&) = delete;
    WebSocketClient& operator=(const WebSocketClient&) = delete;

    /// The protocol that the server selected.
    std::optional<std::string> protocol() const;
    void send_text(const std::string& text);
    void send_binary(const std::string& bytes);
    /// One text message, each piece a frame.
    void send_fragments(const std::vector<std::string>& pieces);
    /// As most clients do; send_binary() has frames of some kilobytes.
    void send_in_one_frame(const std::string& message);
    void send_in_frames_of(std::size_t bytes, const std::string& message);
    void ping(const std::string& payload);
    void pong(const std::string& payload);
    /// The next message; empty if the socket was closed instead. For threads of a test.
    std::string read_if_any();
    /// The next message; the test fails if the socket was closed instead.
    std::string read();
    bool got_text() const;
    /// The next control frame: "ping:payload", "pong:payload".
    std::string read_control();
    /// Reads until the server closes and gives its code.
    int read_close();
    std::string close_reason() const;
    void close(std::uint16_t code);

 private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace cellkeep::http::test
