// SPDX-License-Identifier: Apache-2.0
//
// A listener whose socket another program is to have: it pauses, goes on, or passes the socket on.
#include "kernel-manager/http/connection/connection.hpp"
#include "kernel-manager/http/listener.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/http/test_server.hpp"

#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
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

TEST_CASE("a paused listener closes what waits and serves again", "[http][listener]") {
    TestServer server;
    RawClient before(server.port());
    CHECK_THAT(ask_again(before), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pause(kAnyAnswer));
    CHECK(before.read_all().empty());
    // The kernel takes it, and the request waits there.
    RawClient meanwhile(server.port());
    CHECK(meanwhile.send(request_text("GET", "/ok")));
    server.resume();
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
    // Its connection was told to end with the answer.
    CHECK_THAT(held.read_all(), !Contains("HTTP/1.1"));
    CHECK(server.pause(kAnyAnswer));
}

TEST_CASE("a body without an end of its own ends in a pause", "[http][listener]") {
    TestServer server;
    RawClient held(server.port());
    held.send(request_text("GET", "/stream/until_closing"));
    CHECK_THAT(held.read_until("begun"), StartsWith("HTTP/1.1 200 "));
    CHECK(server.pause(kAnyAnswer));
    const std::string rest = held.read_all();
    CHECK_THAT(rest, Contains("left"));
    CHECK_THAT(rest, Catch::Matchers::EndsWith("0\r\n\r\n"));  // it is whole
}

TEST_CASE("a body that begins in a pause hears of it", "[http][listener]") {
    TestServer server;
    RawClient late(server.port());
    RawClient other(server.port());
    CHECK_THAT(ask_again(late), StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(ask_again(other), StartsWith("HTTP/1.1 200 "));
    // What has arrived is answered.
    late.send(request_text("GET", "/stream/until_closing"));
    CHECK(server.pause(kAnyAnswer));
    CHECK_THAT(late.read_all(), Contains("begun") && Contains("left"));
    CHECK(other.read_all().empty());
}

TEST_CASE("a client that has just come has its first answer in a pause", "[http][listener]") {
    TestServer server;
    RawClient first(server.port());
    RawClient silent(server.port());
    CHECK_THAT(
        ask_again(first), StartsWith("HTTP/1.1 200 "));  // so the other one was accepted, too
    const auto begun = std::chrono::steady_clock::now();
    CHECK(server.pause(kAnyAnswer));
    // The silent one was given its time, and was closed then.
    CHECK(silent.read_all().empty());
    CHECK(std::chrono::steady_clock::now() - begun < kAnyAnswer);
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

}  // namespace
}  // namespace cellkeep::http::test
