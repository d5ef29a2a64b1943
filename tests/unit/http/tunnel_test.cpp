// SPDX-License-Identifier: Apache-2.0
//
// What is passed on of other servers: their answers, and the connection itself.
#include "kernel-manager/http/message/head.hpp"
#include "kernel-manager/http/message/streaming.hpp"
#include "tests/unit/http/test_server.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

constexpr const char* kUpgrade = "Connection: Upgrade\r\nUpgrade: echo\r\n";

TEST_CASE("another server's answer is passed on as it is", "[http][tunnel]") {
    const TestServer server;
    RawClient client(server.port());
    for (int i = 0; i < 2; ++i) {
        client.send(request_text("GET", "/stream/foreign"));
        const std::string answer = client.read_until("line 9\n");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 404 Not Found\r\n"));
        CHECK_THAT(answer, Contains("\r\nLocation: /there\r\n"));
        CHECK_THAT(answer, Contains("\r\nContent-Length: 70\r\n"));
        CHECK_THAT(answer, !Contains("Transfer-Encoding"));
        // Nothing of this server's own style.
        CHECK_THAT(answer, !Contains("Cache-Control") && !Contains("nosniff"));
        CHECK_THAT(answer, !Contains("problem"));
    }
    client.send(request_text("HEAD", "/stream/foreign"));
    const std::string head = client.read_until("\r\n\r\n");
    CHECK_THAT(head, Contains("\r\nContent-Length: 70\r\n"));
    client.send(request_text("GET", "/ok"));
    CHECK_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_CASE("for HTTP/1.0 a stream of a known length says it", "[http][tunnel]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(
        "GET /stream/foreign HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer t\r\n\r\n");
    const std::string answer = client.read_all();
    CHECK_THAT(answer, Contains("\r\nContent-Length: 70\r\n"));
    CHECK_THAT(answer, EndsWith("line 9\n"));
}

TEST_CASE("a tunnel has the connection for itself, and closes behind it", "[http][tunnel]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/tunnel", kUpgrade));
    const std::string head = client.read_until("\r\n\r\n");
    CHECK_THAT(head, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
    CHECK_THAT(head, EndsWith("\r\nConnection: Upgrade\r\n\r\n"));
    CHECK_THAT(head, Contains("\r\nUpgrade: echo\r\n") && !Contains("Content-Length"));
    client.send("GET / HTTP/1.1\r\n\r\n");  // no request any more
    CHECK(client.read_until("\r\n\r\n") == "GET / HTTP/1.1\r\n\r\n");
    client.send(".");
    CHECK(client.read_all() == ".");
}

TEST_CASE("what comes before the answer opens no tunnel", "[http][tunnel]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/tunnel", kUpgrade) + "too early");
    CHECK_THAT(client.read_all(), !Contains("too early"));
}

TEST_CASE("a server that stops ends its tunnels", "[http][tunnel]") {
    TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/tunnel", kUpgrade));
    (void)client.read_until("\r\n\r\n");
    server.stop();
    CHECK(client.read_all().empty());
}

TEST_CASE("a tunnel needs what every address needs", "[http][tunnel]") {
    const TestServer server;
    RawClient client(server.port());
    client.send("GET /tunnel HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 401 "));
}

}  // namespace
}  // namespace cellkeep::http::test
