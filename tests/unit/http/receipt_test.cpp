// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/http/test_server.hpp"
#include "tests/unit/http/websocket_client.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http::test {
namespace {

/// The report itself is a message, too; the next report counts it.
std::string report(WebSocketClient& client) {
    client.send_text("report");
    return client.read();
}

TEST_CASE("what a client has read is proved when its next message comes", "[http][receipt]") {
    const TestServer server;
    WebSocketClient client(server.port(), "/proving-socket");
    CHECK(report(client) == "0");
    client.send_text("a");
    CHECK(client.read() == "a");
    CHECK(client.got_text());
    CHECK(report(client) == "2");
    client.send_binary("b");
    CHECK(client.read() == "b");
    CHECK_FALSE(client.got_text());
    CHECK(report(client) == "4");
}

TEST_CASE("what a client has not read is not proved", "[http][receipt]") {
    const TestServer server;
    WebSocketClient client(server.port(), "/proving-socket");
    client.send_text("a");
    client.send_text("report");
    CHECK(client.read() == "a");
    CHECK(client.read() == "0");
    CHECK(report(client) == "2");
}

TEST_CASE("messages that take many writes arrive whole and prove receipt", "[http][receipt]") {
    const TestServer server;
    WebSocketClient client(server.port(), "/proving-socket");
    for (int i = 0; i < 5; ++i) {
        client.send_text("large");
        CHECK(client.read() == std::string(5'000'000, 'l'));
    }
    client.ping("x");
    CHECK(report(client) == "5");
}

TEST_CASE("a pong without a ping proves nothing that was not sent", "[http][receipt]") {
    const TestServer server;
    WebSocketClient client(server.port(), "/proving-socket");
    client.pong(std::string(8, '\xff'));
    client.pong("short");
    CHECK(report(client) == "0");
}

}  // namespace
}  // namespace cellkeep::http::test
