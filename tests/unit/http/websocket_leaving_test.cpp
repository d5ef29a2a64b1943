// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket whose server asks its client to connect again, and listens until the client goes.
#include "tests/unit/http/test_server.hpp"
#include "tests/unit/http/websocket_client.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace cellkeep::http::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

/// Longer than any answer here takes.
constexpr std::chrono::milliseconds kLongPause{20'000};
constexpr std::chrono::milliseconds kShortPause{50};

/// A client's frame, whose mask is zero. first: with FIN.
std::string frame_of(char first, std::string_view payload) {
    std::string frame{first, static_cast<char>(0x80U | payload.size())};
    frame.append(4, '\0');
    return frame.append(payload);
}

std::string text_frame(std::string_view text) {
    return frame_of('\x81', text);
}

std::string close_frame(std::string_view payload = "\x03\xf4") {
    return frame_of('\x88', payload);
}

/// Connected, and asked to leave.
struct LeavingClient {
    explicit LeavingClient(const TestServer& server) : client(server.port()) {
        client.send(request_text("GET", "/leaving-socket", handshake_headers()));
        (void)client.read_until("\r\n\r\n");
        client.send(text_frame("leave"));
        asked = client.read_until("Connect again.");
    }
    RawClient client;
    std::string asked;
};

TEST_CASE("what a client says before its own close is heard", "[http][websocket]") {
    const TestServer server;
    LeavingClient leaving(server);
    // One frame, of a close code and a reason.
    CHECK(
        leaving.asked ==
        "\x88\x10\x03\xf4"
        "Connect again.");
    leaving.client.send(text_frame("one"));
    leaving.client.send(frame_of('\x01', "tw") + frame_of('\x80', "o"));
    leaving.client.send(frame_of('\x89', "a ping") + text_frame("three") + close_frame());
    // No echo, no pong, no second close frame: nothing follows a close frame.
    CHECK(leaving.client.read_all().empty());
    leaving.client.end_sending();  // the server waits for that
    CHECK(server.heard() == Texts{"one", "two", "three"});
    CHECK(server.last_receive_error() == ErrorCode::kUnavailable);
    CHECK(server.last_send_error() == ErrorCode::kUnavailable);
}

TEST_CASE("what comes behind the client's close is no message", "[http][websocket]") {
    const TestServer server;
    LeavingClient leaving(server);
    leaving.client.send(text_frame("one") + close_frame() + text_frame("late"));
    CHECK(leaving.client.read_all().empty());
    leaving.client.end_sending();
    CHECK(server.heard() == Texts{"one"});
}

TEST_CASE("a client that is leaving may still break the protocol", "[http][websocket]") {
    const TestServer server;
    LeavingClient leaving(server);
    const std::string broken = GENERATE(
        std::string("\x81\x01x", 3),         // not masked
        std::string("\xc1\x80\0\0\0\0", 6),  // a reserved bit
        frame_of('\x88', "\x03"));           // half a close code
    leaving.client.send(text_frame("one") + broken + text_frame("two"));
    CHECK(leaving.client.read_all().empty());
    leaving.client.end_sending();
    CHECK(server.heard() == Texts{"one"});
}

TEST_CASE("a client that does not leave is cut off in time", "[http][websocket]") {
    ConnectionLimits limits;
    limits.drain_timeout = 100ms;
    limits.sweep_period = 20ms;
    const TestServer server(limits);
    LeavingClient leaving(server);
    leaving.client.send(text_frame("one"));
    CHECK(leaving.client.read_all().empty());
    CHECK(server.heard() == Texts{"one"});
}

TEST_CASE("a client that vanishes while it leaves ends the handler", "[http][websocket]") {
    const TestServer server;
    {
        LeavingClient leaving(server);
        leaving.client.send(text_frame("one"));
    }
    CHECK(server.heard() == Texts{"one"});
    CHECK(server.last_receive_error() == ErrorCode::kUnavailable);
}

TEST_CASE("a library's client sees the code behind what was sent before", "[http][websocket]") {
    const TestServer server;
    WebSocketClient client(server.port(), "/leaving-socket");
    const std::string large(5'000'000, 'x');
    client.send_binary(large);
    client.send_text("leave");
    CHECK(client.read() == large);
    CHECK(client.read_close() == 1012);
    CHECK(client.close_reason() == "Connect again.");
    CHECK(server.heard().empty());
}

TEST_CASE("a pause leaves such a WebSocket open, and waits for its end", "[http][listener]") {
    TestServer server;
    WebSocketClient stays(server.port(), "/leaving-socket");
    WebSocketClient goes(server.port(), "/echo-socket");
    goes.send_text("x");
    CHECK(goes.read() == "x");
    // The other one is closed, as ever.
    bool paused = false;
    std::thread pausing([&] { paused = server.pause(kLongPause); });
    CHECK(goes.read_close() == 1012);
    pausing.join();
    CHECK(paused);
    stays.send_text("in the pause");
    CHECK(stays.read() == "in the pause");
    CHECK_FALSE(server.wait_until_empty(kShortPause));
    stays.send_text("leave");
    CHECK(stays.read_close() == 1012);
    CHECK(server.wait_until_empty(kLongPause));
    server.resume();
    WebSocketClient again(server.port(), "/leaving-socket");
    again.send_text("again");
    CHECK(again.read() == "again");
}

TEST_CASE("a server that stops closes it as any", "[http][websocket]") {
    TestServer server;
    WebSocketClient client(server.port(), "/leaving-socket");
    const bool is_paused = GENERATE(false, true);
    if (is_paused) {
        CHECK(server.pause(kLongPause));
    }
    server.begin_stop();
    CHECK(client.read_close() == 1012);
    server.stop();
}

}  // namespace
}  // namespace cellkeep::http::test
