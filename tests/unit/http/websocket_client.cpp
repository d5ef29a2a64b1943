// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/http/websocket_client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <catch2/catch.hpp>

#include <chrono>

namespace cellkeep::http::test {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;

namespace {

constexpr std::chrono::seconds kPatience{20};

}  // namespace

struct WebSocketClient::State {
    asio::io_context io{1};
    websocket::stream<asio::ip::tcp::socket> stream{io};
    std::string protocol;
    std::vector<std::string> control;
    boost::beast::flat_buffer buffer;
    bool reading = false;
    bool done = false;
    boost::system::error_code result;

    void start_read() {
        if (reading) {
            return;
        }
        reading = true;
        done = false;
        io.restart();
        stream.async_read(
            buffer, [this](const boost::system::error_code& error, std::size_t /*bytes*/) {
                reading = false;
                done = true;
                result = error;
            });
    }
    boost::system::error_code read() {
        start_read();
        while (!done) {
            REQUIRE(io.run_one_for(kPatience) > 0);
        }
        return result;
    }
    std::string take() {
        std::string message(static_cast<const char*>(buffer.data().data()), buffer.size());
        buffer.clear();
        return message;
    }
};

std::string handshake_headers() {
    return "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
}

WebSocketClient::WebSocketClient(
    std::uint16_t port, const std::string& target, const std::string& protocols)
    : state_(std::make_unique<State>()) {
    auto& stream = state_->stream;
    stream.next_layer().connect({asio::ip::address_v4::loopback(), port});
    stream.read_message_max(0);
    stream.set_option(
        websocket::stream_base::decorator([&protocols](websocket::request_type& request) {
            request.set(boost::beast::http::field::authorization, "Bearer t");
            if (!protocols.empty()) {
                request.set(boost::beast::http::field::sec_websocket_protocol, protocols);
            }
        }));
    stream.control_callback([this](websocket::frame_type kind, boost::beast::string_view payload) {
        const std::string text(payload);
        if (kind != websocket::frame_type::close) {
            state_->control.push_back(
                (kind == websocket::frame_type::ping ? "ping:" : "pong:") + text);
        }
    });
    websocket::response_type response;
    stream.handshake(response, "localhost", target);
    state_->protocol = std::string(response[boost::beast::http::field::sec_websocket_protocol]);
}

WebSocketClient::~WebSocketClient() = default;

std::optional<std::string> WebSocketClient::protocol() const {
    return state_->protocol.empty() ? std::nullopt : std::optional(state_->protocol);
}

void WebSocketClient::send_text(const std::string& text) {
    state_->stream.text(true);
    state_->stream.write(asio::buffer(text));
}

void WebSocketClient::send_binary(const std::string& bytes) {
    state_->stream.binary(true);
    boost::system::error_code ignored;  // Ignored: the server may close in the middle.
    state_->stream.write(asio::buffer(bytes), ignored);
}

void WebSocketClient::send_fragments(const std::vector<std::string>& pieces) {
    state_->stream.text(true);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        state_->stream.write_some(i + 1 == pieces.size(), asio::buffer(pieces[i]));
    }
}

void WebSocketClient::send_in_one_frame(const std::string& message) {
    state_->stream.binary(true);
    state_->stream.auto_fragment(false);
    state_->stream.write(asio::buffer(message));
}

void WebSocketClient::send_in_frames_of(std::size_t bytes, const std::string& message) {
    state_->stream.text(true);
    boost::system::error_code error;
    for (std::size_t at = 0; at < message.size() && !error; at += bytes) {
        const std::string piece = message.substr(at, bytes);
        state_->stream.write_some(at + piece.size() == message.size(), asio::buffer(piece), error);
    }
}

void WebSocketClient::pong(const std::string& payload) {
    state_->stream.pong(websocket::ping_data(payload));
}

void WebSocketClient::ping(const std::string& payload) {
    state_->stream.ping(websocket::ping_data(payload));
}

std::string WebSocketClient::read_if_any() {
    return state_->read() ? std::string() : state_->take();
}

std::string WebSocketClient::read() {
    const auto error = state_->read();
    if (error) {
        FAIL("the socket ended with " << error.message());
    }
    return state_->take();
}

bool WebSocketClient::got_text() const {
    return state_->stream.got_text();
}

std::string WebSocketClient::read_control() {
    state_->start_read();
    while (state_->control.empty() && !state_->done) {
        REQUIRE(state_->io.run_one_for(kPatience) > 0);
    }
    REQUIRE_FALSE(state_->control.empty());
    std::string first = state_->control.front();
    state_->control.erase(state_->control.begin());
    return first;
}

int WebSocketClient::read_close() {
    boost::system::error_code error;
    while (!error) {
        error = state_->read();
        (void)state_->take();
    }
    if (error != websocket::error::closed) {
        FAIL("the socket ended with " << error.message());
    }
    return state_->stream.reason().code;
}

std::string WebSocketClient::close_reason() const {
    return std::string(state_->stream.reason().reason.c_str());
}

void WebSocketClient::close(std::uint16_t code) {
    state_->stream.close(websocket::close_reason(static_cast<websocket::close_code>(code)));
}

}  // namespace cellkeep::http::test
