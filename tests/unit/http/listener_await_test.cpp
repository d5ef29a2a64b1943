// SPDX-License-Identifier: Apache-2.0
//
// Requests whose answers another program gives, on the connections on which they came.
#include "kernel-manager/http/connection/connection.hpp"
#include "kernel-manager/http/listener.hpp"
#include "tests/unit/http/test_server.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::http::test {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

/// Longer than any pause here takes.
constexpr std::chrono::milliseconds kAnyPause{20'000};
/// For what is never at rest.
constexpr auto kInVain = 2 * kFirstRequestPatience;

std::string post_text(std::string_view headers = {}) {
    return request_text("POST", "/stream/await", headers, "{}");
}

void release(const TestServer& server) {
    RawClient other(server.port());
    other.send(request_text("GET", "/stream/release"));
    CHECK_THAT(other.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 204 "));
}

void check_ok(RawClient& client) {
    client.send(request_text("GET", "/ok"));
    CHECK_THAT(client.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("another program gives an answer on the same connection", "[http][listener][await]") {
    std::optional<TestServer> first(std::in_place);
    RawClient client(first->port());
    client.send(post_text("X-Own: 1\r\n"));
    first->wait_for_awaiting(1);
    REQUIRE(first->pause(kAnyPause, InPause::kAwait));
    InheritedSocket passed = first->pass_on();
    REQUIRE(passed.awaiting.size() == 1);
    const AwaitingConnection& one = passed.awaiting[0];
    CHECK(one.awaited == "thing");
    CHECK_THAT(one.head, StartsWith("POST /stream/await HTTP/1.1\r\n") && Contains("X-Own: 1\r\n"));
    CHECK_THAT(one.head, !Contains("Content-Length"));
    CHECK(check_connection(one.fd).has_value());
    first->stop();
    for (const AccessRecord& record : first->records()) {
        CHECK(record.path != "/stream/await");  // it is not this one's
    }
    first.reset();
    const TestServer second({}, "127.0.0.1:0", Trust::kToken, nullptr, std::move(passed));
    const std::string answer = client.read_until("answered: thing");
    CHECK_THAT(answer, StartsWith("HTTP/1.1 200 ") && Contains("Content-Length: 15\r\n"));
    check_ok(client);
}

TEST_CASE("another program goes on with a stream", "[http][listener][await]") {
    std::optional<TestServer> first(std::in_place);
    RawClient client(first->port());
    client.send(request_text("GET", "/stream/await"));
    CHECK_THAT(client.read_until("begun\n\r\n"), StartsWith("HTTP/1.1 200 "));
    REQUIRE(first->pause(kAnyPause, InPause::kAwait));
    InheritedSocket passed = first->pass_on();
    REQUIRE(passed.awaiting.size() == 1);
    CHECK(passed.awaiting[0].awaited == "place 1");
    first.reset();
    const TestServer second({}, "127.0.0.1:0", Trust::kToken, nullptr, std::move(passed));
    CHECK(client.read_until("0\r\n\r\n") == "f\r\nthere: place 1\n\r\n0\r\n\r\n");
    check_ok(client);
}

TEST_CASE(
    "nothing but its rest is sent behind the beginning of an answer", "[http][listener][await]") {
    std::optional<TestServer> first(std::in_place);
    RawClient client(first->port());
    client.send(request_text("GET", "/stream/await", "X-Refused: 1\r\n"));
    CHECK_THAT(client.read_until("begun\n\r\n"), StartsWith("HTTP/1.1 200 "));
    first->wait_for_awaiting(1);
    REQUIRE(first->pause(kAnyPause, InPause::kAwait));
    InheritedSocket passed = first->pass_on();
    REQUIRE(passed.awaiting.size() == 1);
    first.reset();
    SECTION("if the handler gives another answer") {}
    SECTION("if the head is none") {
        passed.awaiting[0].head = "no head\r\n\r\n";
    }
    SECTION("if its token is not let in") {
        passed.awaiting[0].head = "GET /stream/await HTTP/1.1\r\nHost: localhost\r\n\r\n";
    }
    const bool begun = passed.awaiting[0].begun;
    CHECK(begun);
    const TestServer second({}, "127.0.0.1:0", Trust::kToken, nullptr, std::move(passed));
    CHECK(client.read_all().empty());  // it is cut off, as its client sees
}

TEST_CASE("an answer that is awaited is given here after the pause", "[http][listener][await]") {
    TestServer server;
    RawClient client(server.port());
    RawClient stream(server.port());
    client.send(post_text());
    stream.send(request_text("GET", "/stream/await"));
    server.wait_for_awaiting(2);
    CHECK(server.pause(kAnyPause, InPause::kAwait));
    server.resume();
    release(server);
    CHECK_THAT(client.read_until("here"), StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(stream.read_until("0\r\n\r\n"), Contains("here"));
    check_ok(client);
    check_ok(stream);
}

TEST_CASE("what waits for an answer passes, however many others may", "[http][listener][await]") {
    std::optional<TestServer> first(std::in_place);
    RawClient rests(first->port());
    check_ok(rests);
    RawClient client(first->port());
    client.send(post_text());
    first->wait_for_awaiting(1);
    REQUIRE(first->pause(kAnyPause, InPause::kAwait));
    const InheritedSocket passed = first->pass_on(0);
    CHECK(passed.connections.empty());
    CHECK(passed.awaiting.size() == 1);
}

TEST_CASE("an answer that cannot pass is waited for", "[http][listener][await]") {
    TestServer server;
    RawClient client(server.port());
    auto waiting = InPause::kAwait;
    SECTION("the other program does not know how") {
        client.send(post_text());
        waiting = InPause::kRest;
    }
    SECTION("the request's head is too long") {
        client.send(post_text("X-Long: " + std::string(kAwaitingHeadBytesMax, 'x') + "\r\n"));
    }
    SECTION("the client has sent its next request") {
        client.send(post_text() + request_text("GET", "/ok"));
    }
    SECTION("the body was chunked: fields behind it count as fields of the head") {
        client.send(
            request_text("POST", "/stream/await", "Transfer-Encoding: chunked\r\n") +
            "2\r\n{}\r\n0\r\nX-Behind: 1\r\n\r\n");
    }
    server.wait_for_awaiting(1);
    CHECK_FALSE(server.pause(kInVain, waiting));
    server.resume();
    release(server);
    CHECK_THAT(client.read_until("here"), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pause(kAnyPause, waiting));
}

}  // namespace
}  // namespace cellkeep::http::test
