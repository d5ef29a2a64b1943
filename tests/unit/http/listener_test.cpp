// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/listener.hpp"

#include "tests/unit/http/test_server.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("an address is numeric or localhost, with a port", "[http][listener]") {
    const auto address = parse_listen_address("localhost:8888");
    REQUIRE(address.has_value());
    CHECK(address.value().host == "127.0.0.1");
    CHECK(address.value().port == 8888);
    CHECK(address.value().loopback);
    CHECK(parse_listen_address("[::1]:0").value().loopback);
    CHECK(parse_listen_address("127.9.9.9:65535").value().loopback);
    CHECK_FALSE(parse_listen_address("0.0.0.0:80").value().loopback);
    CHECK_FALSE(parse_listen_address("[::]:80").value().loopback);
    CHECK_FALSE(parse_listen_address("192.0.2.7:80").value().loopback);
}

TEST_CASE("an address that is not one is refused", "[http][listener]") {
    const std::string text = GENERATE(
        as<std::string>(),
        "",
        "8888",
        ":8888",
        "localhost",
        "localhost:",
        "localhost:x",
        "localhost:-1",
        "localhost:65536",
        "localhost:80x",
        "example.org:80",
        "::1:80",
        "[::1]",
        "[127.0.0.1]:80",
        "256.0.0.1:80",
        "[]:80",
        "127.0.0.1:8 8");
    CAPTURE(text);
    CHECK(parse_listen_address(text).has_error());
}

TEST_CASE("a port that is taken is a conflict", "[http][listener]") {
    const TestServer server;
    boost::asio::io_context io;
    const Application application(TokenAuth("t"), HostGuard());
    const auto second =
        Listener::create(io, {"127.0.0.1", server.port(), true}, application, {}, {});
    REQUIRE(second.has_error());
    CHECK(second.error().code() == ErrorCode::kConflict);
}

TEST_CASE("one connection more than the maximum is refused with an answer", "[http][listener]") {
    ConnectionLimits limits;
    limits.connections_max = 2;
    const TestServer server(limits);
    RawClient first(server.port());
    RawClient second(server.port());
    for (RawClient* client : {&first, &second}) {
        client->send(request_text("GET", "/ok"));
        CHECK_THAT(client->read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
    }
    RawClient third(server.port());
    third.send(request_text("GET", "/ok"));
    const std::string refusal = third.read_all();
    CHECK_THAT(refusal, StartsWith("HTTP/1.1 503 "));
    CHECK_THAT(refusal, Contains("\"instance\":\"/ok\""));
}

TEST_CASE("a listener's bounds are those of the table", "[http][listener]") {
    const ConnectionLimits bounds;
    CHECK(bounds.connections_max == limits::kHttpConnectionsMax);
    CHECK(bounds.head_bytes_max == limits::kHttpHeadBytesMax);
    CHECK(bounds.drain_bytes_max == limits::kHttpDrainBytesMax);
    CHECK(bounds.head_timeout == limits::kHttpHeadTimeout);
    CHECK(bounds.body_timeout == limits::kHttpBodyTimeout);
    CHECK(bounds.body_bytes_per_second == limits::kHttpBodyBytesPerSecond);
    CHECK(bounds.idle_timeout == limits::kHttpIdleTimeout);
    CHECK(bounds.drain_timeout == limits::kHttpDrainTimeout);
    CHECK(bounds.websocket_message_bytes_max == limits::kFrameBytesMax);
    CHECK(bounds.websocket_ping_interval == limits::kWebSocketPingInterval);
    CHECK(bounds.websocket_pong_timeout == limits::kWebSocketPongTimeout);
    CHECK(bounds.websocket_stall_max == limits::kWebSocketStallMax);
}

TEST_CASE("stopping closes connections that wait and ends the loop", "[http][listener]") {
    TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/ok"));
    (void)client.read_until("{\"ok\":true}");
    server.stop();
    CHECK(client.read_all().empty());
}

}  // namespace
}  // namespace cellkeep::http::test
