// SPDX-License-Identifier: Apache-2.0
//
// A listener whose socket another program is to have: it pauses, goes on, or passes the socket on.
#include "kernel-manager/http/connection/connection.hpp"
#include "kernel-manager/http/listener.hpp"
#include "protocol/limits.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/http/test_server.hpp"
#include "tests/unit/http/websocket_client.hpp"

#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::http::test {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using cellkeep::test::TemporaryDirectory;

/// Longer than any answer here takes.
constexpr std::chrono::milliseconds kAnyAnswer{20'000};

std::string ask_again(RawClient& client, std::string_view target = "/ok") {
    client.send(request_text("GET", target));
    return client.read_until("{\"ok\":true}");
}

TEST_CASE("requests wait in a pause, on new connections and on old ones", "[http][listener]") {
    TestServer server;
    RawClient before(server.port());
    CHECK_THAT(ask_again(before), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pause(kAnyAnswer));
    CHECK(before.send(request_text("GET", "/ok")));
    // The kernel takes it, and the request waits there.
    RawClient meanwhile(server.port());
    CHECK(meanwhile.send(request_text("GET", "/ok")));
    CHECK(server.pause(kAnyAnswer));
    server.resume();
    CHECK_THAT(before.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(meanwhile.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
    // Once more.
    CHECK(server.pause(kAnyAnswer));
    server.resume();
    RawClient behind(server.port());
    CHECK_THAT(ask_again(behind), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("a pause waits for a request that is being answered", "[http][listener]") {
    TestServer server;
    RawClient held(server.port());
    held.send(request_text("GET", "/stream/hold"));
    CHECK_THAT(held.read_until("begun"), StartsWith("HTTP/1.1 200 "));
    CHECK_FALSE(server.pause(2 * kFirstRequestPatience));
    server.resume();
    RawClient other(server.port());
    other.send(request_text("GET", "/stream/release"));
    CHECK_THAT(other.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 "));
    CHECK_THAT(held.read_until("0\r\n\r\n"), !Contains("HTTP/1.1"));
    CHECK_THAT(ask_again(held), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pause(kAnyAnswer));
}

TEST_CASE("a body without an end of its own ends in a pause", "[http][listener]") {
    TestServer server;
    RawClient held(server.port());
    held.send(request_text("GET", "/stream/until_closing"));
    CHECK_THAT(held.read_until("begun"), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pause(kAnyAnswer));
    const std::string rest = held.read_until("0\r\n\r\n");  // it is whole
    CHECK_THAT(rest, Contains("left"));
}

TEST_CASE("a client that has said nothing yet is not closed in a pause", "[http][listener]") {
    TestServer server;
    RawClient first(server.port());
    RawClient silent(server.port());
    CHECK_THAT(
        ask_again(first), StartsWith("HTTP/1.1 200 "));  // so the other one was accepted, too
    CHECK(server.pause(kAnyAnswer));
    CHECK(silent.send(request_text("GET", "/ok")));
    server.resume();
    CHECK_THAT(silent.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("connections at rest go on in another listener", "[http][listener]") {
    std::optional<TestServer> first(std::in_place);
    RawClient asked(first->port());
    RawClient silent(first->port());
    CHECK_THAT(ask_again(asked), StartsWith("HTTP/1.1 200 "));
    REQUIRE(first->pause(kAnyAnswer));
    CHECK(asked.send(request_text("GET", "/ok")));
    InheritedSocket passed = first->pass_on();
    CHECK(passed.connections.size() == 2);
    for (const UniqueFd& connection : passed.connections) {
        CHECK(check_connection(connection).has_value());
    }
    first.reset();
    CHECK(silent.send(request_text("GET", "/ok")));
    const TestServer second({}, "127.0.0.1:0", Trust::kToken, nullptr, std::move(passed));
    for (RawClient* client : {&asked, &silent}) {
        CHECK_THAT(client->read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
        CHECK_THAT(ask_again(*client), StartsWith("HTTP/1.1 200 "));
    }
}

TEST_CASE("no more connections pass than may", "[http][listener]") {
    std::optional<TestServer> first(std::in_place);
    RawClient one(first->port());
    RawClient other(first->port());
    CHECK_THAT(ask_again(one), StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(ask_again(other), StartsWith("HTTP/1.1 200 "));
    REQUIRE(first->pause(kAnyAnswer));
    const std::size_t most = GENERATE(0U, 1U, 2U);
    InheritedSocket passed = first->pass_on(most);
    CHECK(passed.connections.size() == most);
    first.reset();
    const TestServer second({}, "127.0.0.1:0", Trust::kToken, nullptr, std::move(passed));
    std::size_t answered = 0;
    for (RawClient* client : {&one, &other}) {
        // Of one that was closed it may be refused.
        (void)client->send(request_text("GET", "/ok"));
        answered += client->read_until("{\"ok\":true}").empty() ? 0U : 1U;
    }
    CHECK(answered == most);
}

TEST_CASE(
    "for a program that takes none over, connections are answered and closed", "[http][listener]") {
    TestServer server;
    RawClient idle(server.port());
    RawClient asking(server.port());
    RawClient piping(server.port());
    RawClient silent(server.port());
    for (RawClient* client : {&idle, &asking, &piping}) {
        CHECK_THAT(ask_again(*client), StartsWith("HTTP/1.1 200 "));
    }
    CHECK(asking.send(request_text("GET", "/ok")));
    CHECK(piping.send(request_text("GET", "/ok") + request_text("GET", "/file")));
    CHECK(server.pause(kAnyAnswer, InPause::kClose));
    CHECK(server.pass_on().connections.empty());
    // Each is over, and what was asked before has its answer.
    CHECK(idle.read_all().empty());
    CHECK(silent.read_all().empty());
    CHECK_THAT(asking.read_all(), StartsWith("HTTP/1.1 200 ") && Contains("{\"ok\":true}"));
    const std::string answers = piping.read_all();
    CHECK_THAT(answers, StartsWith("HTTP/1.1 200 ") && Contains("{\"ok\":true}"));
    // Or the client learns with its first answer that the second request was not read.
    CHECK_THAT(answers, Contains("23456") || Contains("Connection: close"));
    // New ones wait for the next program, or for this one.
    RawClient later(server.port());
    CHECK(later.send(request_text("GET", "/ok")));
    server.resume();
    CHECK_THAT(later.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE(
    "a request that was read behind another one has its answer in a pause", "[http][listener]") {
    TestServer server;
    RawClient client(server.port());
    CHECK(client.send(request_text("GET", "/stream/until_closing") + request_text("GET", "/ok")));
    CHECK_THAT(client.read_until("begun"), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pause(kAnyAnswer, InPause::kClose));
    CHECK_THAT(client.read_until("0\r\n\r\n"), Contains("left"));
    const std::string second = client.read_all();
    CHECK_THAT(second, StartsWith("HTTP/1.1 200 ") && Contains("Connection: close"));
    CHECK_THAT(second, Contains("{\"ok\":true}"));
}

TEST_CASE("a pause that ends at once closes no connection", "[http][listener]") {
    TestServer server;
    RawClient client(server.port());
    for (int i = 0; i < 20; ++i) {
        CHECK_THAT(ask_again(client), StartsWith("HTTP/1.1 200 "));
        (void)server.pause(0ms);  // Ignored: it may rest already.
        server.resume();
    }
    CHECK_THAT(ask_again(client), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("a pause that closes is followed by one in which connections rest", "[http][listener]") {
    TestServer server;
    CHECK(server.pause(kAnyAnswer, InPause::kClose));
    server.resume();
    RawClient client(server.port());
    CHECK_THAT(ask_again(client), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pause(kAnyAnswer));
    CHECK(client.send(request_text("GET", "/ok")));
    CHECK(server.pass_on().connections.size() == 1);
}

TEST_CASE("a WebSocket whose client answers no close ends no pause in vain", "[http][listener]") {
    TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/echo-socket", handshake_headers()));
    CHECK_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 101 "));
    // Outside a pause it would have limits::kHttpDrainTimeout.
    constexpr auto kShortPause = 4 * kPausedClosePatience;
    static_assert(kShortPause < limits::kHttpDrainTimeout);
    CHECK(server.pause(kShortPause));
}

TEST_CASE("a client that does not end what it sends ends no pause in vain", "[http][listener]") {
    constexpr auto kShortPause = 4 * kPausedStepPatience;
    static_assert(
        kShortPause < limits::kHttpHeadTimeout && kShortPause < limits::kHttpDrainTimeout);
    TestServer server;
    SECTION("a head") {
        RawClient client(server.port());
        // Who has the first answer knows that the half of a head was read with that request. Unread
        // it would stay in the socket, and the connection would rest.
        client.send(request_text("GET", "/ok") + "GET /ok HTT");
        CHECK_THAT(client.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
        CHECK(server.pause(kShortPause));
        CHECK_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 408 "));
    }
    SECTION("after a refusal") {
        RawClient client(server.port());
        client.send("no request\r\n\r\n");
        CHECK_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
        CHECK(server.pause(kShortPause));
    }
    server.resume();
    RawClient behind(server.port());
    CHECK_THAT(ask_again(behind), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("a head that comes in pieces is whole after a short pause", "[http][listener]") {
    TestServer server;
    RawClient client(server.port());
    CHECK_THAT(ask_again(client), StartsWith("HTTP/1.1 200 "));
    const std::string request = request_text("GET", "/ok");
    client.send(request.substr(0, 8));
    (void)server.pause(0ms);  // Ignored: nothing of it may have come yet.
    server.resume();
    client.send(request.substr(8));
    CHECK_THAT(client.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("connections on which a request waits pass first", "[http][listener]") {
    std::optional<TestServer> first(std::in_place);
    RawClient one(first->port());
    RawClient other(first->port());
    RawClient third(first->port());
    for (RawClient* client : {&one, &other, &third}) {
        CHECK_THAT(ask_again(*client), StartsWith("HTTP/1.1 200 "));
    }
    REQUIRE(first->pause(kAnyAnswer));
    RawClient& waits = *GENERATE_REF(as<RawClient*>(), &one, &other, &third);
    CHECK(waits.send(request_text("GET", "/ok")));
    InheritedSocket passed = first->pass_on(1);
    first.reset();
    const TestServer second({}, "127.0.0.1:0", Trust::kToken, nullptr, std::move(passed));
    CHECK_THAT(waits.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("connections outside a pause, or that answer, do not pass", "[http][listener]") {
    TestServer server;
    RawClient held(server.port());
    held.send(request_text("GET", "/stream/hold"));
    CHECK_THAT(held.read_until("begun"), StartsWith("HTTP/1.1 200 "));
    RawClient waits(server.port());
    CHECK_THAT(ask_again(waits), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pass_on().connections.empty());
    waits.send(request_text("GET", "/stream/release"));
    CHECK_THAT(waits.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 "));
}

TEST_CASE("a listener that was paused stops as any", "[http][listener]") {
    TestServer server;
    CHECK(server.pause(kAnyAnswer));
    server.stop();
}

TEST_CASE("a socket that was passed on serves in another listener", "[http][listener]") {
    std::optional<TestServer> first(std::in_place);
    const std::uint16_t port = first->port();
    CHECK(first->pause(kAnyAnswer));
    InheritedSocket passed = first->pass_on();
    first->stop();
    // Nobody accepts, and nobody is refused.
    RawClient between(port);
    CHECK(between.send(request_text("GET", "/ok")));
    first.reset();
    const TestServer second({}, "127.0.0.1:0", Trust::kToken, nullptr, std::move(passed));
    CHECK(second.port() == port);
    CHECK_THAT(between.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("the path of a Unix socket goes with the socket", "[http][listener][unix_socket]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    InheritedSocket passed;
    {
        TestServer first({}, "unix:" + path);
        CHECK(first.pause(kAnyAnswer));
        passed = first.pass_on();
    }
    CHECK(std::filesystem::exists(path));
    SECTION("to another listener, and ends with that") {
        {
            const TestServer second({}, "unix:" + path, Trust::kToken, nullptr, std::move(passed));
            RawClient client(path);
            CHECK_THAT(ask_again(client), StartsWith("HTTP/1.1 200 "));
        }
        CHECK_FALSE(std::filesystem::exists(path));
    }
    SECTION("or is removed with what nobody takes") {
        passed = {};
        CHECK_FALSE(std::filesystem::exists(path));
    }
}

TEST_CASE("the address of a socket is the one it listens on", "[http][listener]") {
    const std::string text = GENERATE(as<std::string>(), "127.0.0.1:0", "[::1]:0", "unix:");
    const TemporaryDirectory directory;
    TestServer server({}, text == "unix:" ? text + directory.path() + "/s" : text);
    const InheritedSocket passed = server.pass_on();
    const auto address = address_of(passed.fd);
    REQUIRE(address.has_value());
    CHECK(address.value().loopback);
    const std::string url = server.url();
    CHECK(url == (text == "unix:" ? "" : "http://") + to_text(address.value()));
    CHECK(parse_listen_address(to_text(address.value())).has_value());
}

TEST_CASE("a descriptor that does not listen has no address", "[http][listener]") {
    UniqueFd fd;
    SECTION("none") {}
    SECTION("a file") {
        fd = UniqueFd(::memfd_create("file", MFD_CLOEXEC));
    }
    SECTION("a socket of datagrams") {
        fd = UniqueFd(::socket(AF_INET, SOCK_DGRAM, 0));
    }
    SECTION("a socket that is not bound") {
        fd = UniqueFd(::socket(AF_UNIX, SOCK_STREAM, 0));
    }
    CHECK(address_of(fd).error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("what is no connection is not taken for one", "[http][listener]") {
    UniqueFd fd;
    SECTION("none") {}
    SECTION("a file") {
        fd = UniqueFd(::memfd_create("file", MFD_CLOEXEC));
    }
    SECTION("a socket of datagrams") {
        fd = UniqueFd(::socket(AF_INET, SOCK_DGRAM, 0));
    }
    SECTION("a socket that listens") {
        fd = UniqueFd(::socket(AF_INET, SOCK_STREAM, 0));
        REQUIRE(::listen(fd.get(), 1) == 0);
    }
    CHECK(check_connection(fd).error().code() == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace cellkeep::http::test
