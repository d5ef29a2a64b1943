// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/websocket.hpp"

#include "tests/unit/http/test_server.hpp"
#include "tests/unit/http/websocket_client.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <barrier>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace cellkeep::http::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using std::chrono::milliseconds;

TEST_CASE("text and binary messages go both ways", "[http][websocket]") {
    const TestServer server;
    WebSocketClient client(server.port(), "/echo-socket");
    client.send_text("hello \xc3\xa9");
    CHECK(client.read() == "hello \xc3\xa9");
    CHECK(client.got_text());
    client.send_binary(std::string("\0\x01\xff", 3));
    CHECK(client.read() == std::string("\0\x01\xff", 3));
    CHECK_FALSE(client.got_text());
    client.send_text("");
    CHECK(client.read().empty());
}

TEST_CASE("one of the offered protocols is selected, or none", "[http][websocket]") {
    const TestServer server;
    const auto selected = [&server](const std::string& offered) {
        return WebSocketClient(server.port(), "/echo-socket", offered).protocol();
    };
    CHECK(selected("other, v1.test").value_or("none") == "v1.test");
    CHECK(selected("v1.test").value_or("none") == "v1.test");
    CHECK(selected("other").value_or("none") == "none");
    CHECK(selected("").value_or("none") == "none");
}

TEST_CASE("the answer to a handshake has what the handler adds", "[http][websocket]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/echo-socket", handshake_headers()));
    const std::string head = client.read_until("\r\n\r\n");
    CHECK_THAT(head, StartsWith("HTTP/1.1 101 "));
    // The example of RFC 6455, section 1.3.
    CHECK_THAT(head, Contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    CHECK_THAT(head, Contains("X-Test: added\r\n"));
    CHECK_THAT(head, Contains("Server: cellkeep\r\n"));
    CHECK_THAT(head, !Contains("Sec-WebSocket-Extensions"));
}

TEST_CASE("what is not a handshake is a plain request", "[http][websocket]") {
    const TestServer server;
    const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const std::string version = "Sec-WebSocket-Version: 13\r\n";
    const std::string upgrade = "Upgrade: websocket\r\n";
    const std::string connection = "Connection: upgrade\r\n";
    const std::string headers = GENERATE_COPY(
        std::string(),
        upgrade,
        key + version,
        upgrade + key + version,
        connection + key + version,
        connection + upgrade + version,
        connection + upgrade + version + "Sec-WebSocket-Key: short\r\n",
        connection + upgrade + version + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=!\r\n",
        connection + upgrade + version + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n",
        connection + upgrade + version + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZWU9\r\n",
        connection + "Upgrade: h2c\r\n" + key + version,
        connection + upgrade + key + version + "Sec-WebSocket-Protocol: a b\r\n");
    CAPTURE(headers);
    CHECK_THAT(
        exchange(server.port(), request_text("GET", "/echo-socket", headers)),
        StartsWith("HTTP/1.1 400 "));
}

TEST_CASE("another method or an old HTTP is no handshake", "[http][websocket]") {
    const TestServer server;
    RawClient old(server.port());
    old.send(
        "GET /echo-socket HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer t\r\n" +
        handshake_headers() + "\r\n");
    CHECK_THAT(old.read_all(), StartsWith("HTTP/1.1 400 "));
    CHECK_THAT(
        exchange(server.port(), request_text("POST", "/echo", handshake_headers(), "x")),
        StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(
        exchange(server.port(), request_text("GET", "/echo-socket", handshake_headers(), "body")),
        StartsWith("HTTP/1.1 400 "));
}

TEST_CASE("the answer to an unknown version names the known one", "[http][websocket]") {
    const TestServer server;
    const std::string version = GENERATE(
        as<std::string>(), "", "Sec-WebSocket-Version: 8\r\n", "Sec-WebSocket-Version: 14\r\n");
    const std::string answer = exchange(
        server.port(),
        request_text(
            "GET",
            "/echo-socket",
            "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" + version));
    CHECK_THAT(answer, StartsWith("HTTP/1.1 426 Upgrade Required\r\n"));
    CHECK_THAT(answer, Contains("Sec-WebSocket-Version: 13\r\n"));
    CHECK_THAT(answer, Contains("Upgrade: websocket\r\n"));
}

TEST_CASE("a handshake answered as plain HTTP leaves the connection usable", "[http][websocket]") {
    const TestServer server;
    RawClient client(server.port());
    for (int i = 0; i < 2; ++i) {
        client.send(request_text("GET", "/ok", handshake_headers()));
        CHECK_THAT(client.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
    }
    client.send("GET /echo-socket HTTP/1.1\r\nHost: localhost\r\n" + handshake_headers() + "\r\n");
    CHECK_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 401 "));
}

TEST_CASE("frames sent before the answer are no handshake", "[http][websocket]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/echo-socket", handshake_headers()) + "\x81\x80xxxx");
    CHECK_THAT(client.read_all(), StartsWith("HTTP/1.1 400 "));
}

TEST_CASE("fragments are one message", "[http][websocket]") {
    const TestServer server;
    WebSocketClient client(server.port(), "/echo-socket");
    client.send_fragments({"one ", "two ", "", "three"});
    CHECK(client.read() == "one two three");
    client.send_in_frames_of(7, std::string(100'000, 'f'));
    CHECK(client.read() == std::string(100'000, 'f'));
}

TEST_CASE("a message of the maximum is taken and one byte more is a 1009", "[http][websocket]") {
    // limits::kFrameBytesMax
    ConnectionLimits limits;
    limits.websocket_message_bytes_max = 50'000;
    const TestServer server(limits);
    WebSocketClient client(server.port(), "/echo-socket");
    client.send_binary(std::string(50'000, 'm'));
    CHECK(client.read().size() == 50'000);
    SECTION("in one frame") {
        client.send_binary(std::string(50'001, 'm'));
        CHECK(client.read_close() == 1009);
    }
    SECTION("in fragments") {
        client.send_in_frames_of(10'000, std::string(50'001, 'm'));
        CHECK(client.read_close() == 1009);
    }
    SECTION("far more than fits into the sockets' buffers") {
        client.send_binary(std::string(20'000'000, 'm'));
        CHECK(client.read_close() == 1009);
    }
    CHECK(server.last_receive_error() == ErrorCode::kLimitExceeded);
}

TEST_CASE("text that is not UTF-8 is a 1007", "[http][websocket]") {
    const TestServer server;
    const std::string text = GENERATE(
        as<std::string>(), "\xff", "ab\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80");
    WebSocketClient client(server.port(), "/echo-socket");
    client.send_text(text);
    CHECK(client.read_close() == 1007);
}

TEST_CASE("frames that break the protocol are a 1002", "[http][websocket]") {
    const TestServer server;
    const std::string frame = GENERATE(
        std::string("\x81\x01x", 3),                // not masked
        std::string("\xc1\x80\0\0\0\0", 6),         // a reserved bit
        std::string("\x83\x80\0\0\0\0", 6),         // an unknown kind
        std::string("\x80\x80\0\0\0\0", 6),         // continues nothing
        std::string("\x09\x80\0\0\0\0", 6),         // a ping in fragments
        std::string("\x89\xfe\0\x7e\0\0\0\0", 8));  // a long ping
    RawClient client(server.port());
    client.send(request_text("GET", "/echo-socket", handshake_headers()));
    (void)client.read_until("\r\n\r\n");
    client.send(frame);
    const std::string answer = client.read_all();
    CHECK_THAT(answer, StartsWith("\x88"));
    CHECK(answer.substr(2, 2) == "\x03\xea");
}

TEST_CASE("a ping is answered with its own payload", "[http][websocket]") {
    const TestServer server;
    WebSocketClient client(server.port(), "/echo-socket");
    client.ping("are you there");
    CHECK(client.read_control() == "pong:are you there");
}

TEST_CASE("the server pings, and a peer that answers stays", "[http][websocket]") {
    // limits::kWebSocketPingInterval
    ConnectionLimits limits;
    limits.websocket_ping_interval = milliseconds(30);
    limits.websocket_pong_timeout = milliseconds(5000);
    limits.idle_timeout = milliseconds(50);  // of plain HTTP: must not count here
    limits.head_timeout = milliseconds(50);
    limits.body_timeout = milliseconds(50);
    const TestServer server(limits);
    WebSocketClient client(server.port(), "/echo-socket");
    for (int i = 0; i < 20; ++i) {
        CHECK(client.read_control() == "ping:");
    }
    client.send_text("still there");
    CHECK(client.read() == "still there");
}

TEST_CASE("a peer that is silent is cut off", "[http][websocket]") {
    // limits::kWebSocketPongTimeout
    ConnectionLimits limits;
    limits.websocket_ping_interval = milliseconds(30);
    limits.websocket_pong_timeout = milliseconds(150);
    TestServer server(limits);
    RawClient client(server.port());
    client.send(request_text("GET", "/echo-socket", handshake_headers()));
    (void)client.read_until("\r\n\r\n");
    CHECK_THAT(client.read_all(), StartsWith(std::string("\x89\0", 2)));
    server.stop();
    CHECK(server.last_receive_error() == ErrorCode::kUnavailable);
}

TEST_CASE(
    "a peer that never ends its message is cut off, however it answers pings",
    "[http][websocket]") {
    // limits::kHttpBodyTimeout
    ConnectionLimits limits;
    limits.body_timeout = milliseconds(100);
    TestServer server(limits);
    RawClient client(server.port());
    client.send(request_text("GET", "/echo-socket", handshake_headers()));
    (void)client.read_until("\r\n\r\n");
    // A masked text frame of ten bytes (RFC 6455, section 5.2), of which two come.
    client.send(std::string("\x81\x8a\0\0\0\0ab", 8));
    (void)client.read_all();
    server.stop();
    CHECK(server.last_receive_error() == ErrorCode::kUnavailable);
}

TEST_CASE("a message that finds no memory ends its WebSocket, and no other", "[http][websocket]") {
    ConnectionLimits limits;
    limits.arrival_free_bytes_max = 1000;
    limits.arrival_principal_bytes_max = 200'000;
    limits.arrival_wait_max = milliseconds(20);
    const TestServer server(limits);
    WebSocketClient other(server.port(), "/echo-socket");
    WebSocketClient refused(server.port(), "/echo-socket");
    refused.send_text(std::string(500'000, 'x'));
    CHECK(refused.read_close() == 1013);
    other.send_text(std::string(100'000, 'y'));
    CHECK(other.read() == std::string(100'000, 'y'));
}

TEST_CASE("a long message is counted until its handler is done with it", "[http][websocket]") {
    constexpr std::size_t kBytes = 16'000'000;  // more than sockets hold on its way back
    ConnectionLimits limits;
    limits.arrival_principal_bytes_max = 2 * kBytes - 1;  // one and not two
    limits.arrival_wait_max = milliseconds(1000);
    const TestServer server(limits);
    WebSocketClient first(server.port(), "/echo-socket");
    first.send_binary(std::string(kBytes, 'x'));
    CHECK(first.read().size() == kBytes);
    RawClient holding(server.port());
    holding.send(request_text("GET", "/echo-socket", handshake_headers()));
    (void)holding.read_until("\r\n\r\n");
    // A masked binary frame (RFC 6455, section 5.2).
    holding.send(std::string("\x82\xff\0\0\0\0\x00\xf4\x24\x00\0\0\0\0", 14));
    holding.send(std::string(kBytes, 'x'));
    (void)holding.read_once();  // the handler has it, and the rest of the answer is not read
    WebSocketClient refused(server.port(), "/echo-socket");
    refused.send_binary(std::string(kBytes, 'y'));
    CHECK(refused.read_close() == 1013);
}

TEST_CASE("long messages that come together are not in one another's way", "[http][websocket]") {
    constexpr std::size_t kMiB = 1U << 20U;
    ConnectionLimits limits;
    limits.arrival_principal_bytes_max = 5 * kMiB;  // one and a half
    limits.arrival_wait_max = milliseconds(5000);
    const TestServer server(limits);
    std::barrier together(3);
    std::array<std::string, 3> echoes;
    std::vector<std::thread> clients;
    for (std::string& echo : echoes) {
        clients.emplace_back([&server, &together, &echo] {
            WebSocketClient client(server.port(), "/echo-socket");
            together.arrive_and_wait();
            client.send_in_one_frame(std::string(3 * kMiB, 'x'));
            echo = client.read_if_any();
        });
    }
    for (std::thread& client : clients) {
        client.join();
    }
    for (const std::string& echo : echoes) {
        CHECK(echo.size() == 3 * kMiB);
        CHECK(echo.find_first_not_of('x') == std::string::npos);
    }
}

TEST_CASE("a peer that takes nothing is cut off", "[http][websocket]") {
    // limits::kWebSocketStallMax
    ConnectionLimits limits;
    limits.websocket_stall_max = milliseconds(150);
    TestServer server(limits);
    RawClient client(server.port());
    client.send(request_text("GET", "/flood-socket", handshake_headers()));
    (void)client.read_until("\r\n\r\n");
    server.wait_for_end_of_run();
    CHECK(server.last_send_error() == ErrorCode::kUnavailable);
    CHECK(client.read_all().size() > 1000);  // what was on its way still arrives
}

TEST_CASE("a slow peer that takes something stays", "[http][websocket]") {
    ConnectionLimits limits;
    limits.websocket_stall_max = milliseconds(5000);
    TestServer server(limits);
    WebSocketClient client(server.port(), "/large-socket");
    const std::string message = client.read();
    CHECK(message.size() == 40'000'000);
    CHECK(message.find_first_not_of('L') == std::string::npos);
}

TEST_CASE("the close codes of either side arrive", "[http][websocket]") {
    const TestServer server;
    WebSocketClient ended(server.port(), "/ending-socket");
    CHECK(ended.read_close() == 1000);
    WebSocketClient policy(server.port(), "/policy-socket");
    CHECK(policy.read_close() == 1008);
    CHECK(policy.close_reason().size() == 122);  // two bytes each: 123 would cut one in half
    WebSocketClient thrown(server.port(), "/throwing-socket");
    CHECK(thrown.read_close() == 1011);
    const TestServer other;
    WebSocketClient own(other.port(), "/echo-socket");
    own.close(1001);
    CHECK(other.last_receive_error() == ErrorCode::kUnavailable);
}

TEST_CASE("a peer that does not answer the close frame is cut off", "[http][websocket]") {
    ConnectionLimits limits;
    limits.drain_timeout = milliseconds(100);
    const TestServer server(limits);
    RawClient client(server.port());
    client.send(request_text("GET", "/ending-socket", handshake_headers()));
    (void)client.read_until("\r\n\r\n");
    CHECK_THAT(client.read_all(), StartsWith("\x88"));
}

TEST_CASE("a peer that vanishes ends the handler", "[http][websocket]") {
    const TestServer server;
    {
        RawClient client(server.port());
        client.send(request_text("GET", "/echo-socket", handshake_headers()));
        (void)client.read_until("\r\n\r\n");
    }
    server.wait_for_end_of_run();
    CHECK(server.last_receive_error() == ErrorCode::kUnavailable);
}

TEST_CASE("a server that stops closes an open WebSocket with code 1012", "[http][websocket]") {
    TestServer server;
    WebSocketClient client(server.port(), "/echo-socket");
    client.send_text("x");
    CHECK(client.read() == "x");
    server.begin_stop();
    CHECK(client.read_close() == 1012);
    server.stop();
    CHECK(server.last_receive_error() == ErrorCode::kUnavailable);
}

TEST_CASE("stopping does not wait for a WebSocket that does not answer", "[http][websocket]") {
    TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/echo-socket", handshake_headers()));
    (void)client.read_until("\r\n\r\n");
    server.stop();
    CHECK_THAT(client.read_all(), StartsWith("\x88"));
}

TEST_CASE("a small message leaves in one piece", "[http][websocket]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/pieces-socket", handshake_headers()));
    (void)client.read_until("\r\n\r\n");
    // Header and three pieces, in one recv(2).
    CHECK(client.read_once() == "\x82\x09onetwosix");
}

}  // namespace
}  // namespace cellkeep::http::test
