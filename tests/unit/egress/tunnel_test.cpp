// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/egress/client_hello_bytes.hpp"
#include "tests/unit/egress/index_host.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;
using std::chrono::milliseconds;

namespace {

constexpr const char* kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

/// Sends back what it receives.
void echo(Wire& wire) {
    const std::string all = wire.read_all();
    wire.send("echo:" + all);
}

std::string connect_head(const std::string& authority) {
    return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
}

}  // namespace

TEST_CASE("a tunnel carries what begins with the target's ClientHello", "[egress][tunnel]") {
    const FakeServer server(echo);
    ProxyFixture fixture({.allow = {index_authority(server)}});
    resolve_to_loopback(fixture);
    const std::string hello = in_records(make_hello({server_name(kIndexHost)}), 40);
    const bool at_once = GENERATE(true, false);
    Wire wire = fixture.connect();
    if (at_once) {
        wire.send(connect_head(index_authority(server)) + hello + "more");
        CHECK(wire.read_until("\r\n\r\n") == kEstablished);
    } else {
        wire.send(connect_head(index_authority(server)));
        CHECK(wire.read_until("\r\n\r\n") == kEstablished);
        for (const char byte : hello) {
            wire.send(std::string(1, byte));
        }
    }
    if (at_once) {
        // Bytes behind a ClientHello before its answer are no TLS.
        (void)wire.read_all();
        CHECK(fixture.wait_for_records(1)[0].reason == Reason::kNotTls);
        return;
    }
    wire.end_sending();
    CHECK(wire.read_all() == "echo:" + hello);
    const auto record = fixture.wait_for_records(1)[0];
    CHECK(record.reason == Reason::kAllowed);
    CHECK(record.method == "CONNECT");
    CHECK(record.server_name == kIndexHost);
    CHECK(record.address == "127.0.0.1");
    CHECK(record.bytes_up == hello.size());
    CHECK(record.bytes_down == hello.size() + 5);
}

TEST_CASE("a tunnel that begins otherwise carries nothing", "[egress][tunnel]") {
    const FakeServer server(echo);
    ProxyFixture fixture({.allow = {index_authority(server)}});
    resolve_to_loopback(fixture);
    const auto [first, reason] = GENERATE(table<std::string, Reason>({
        {in_records(make_hello({server_name("other.example")})), Reason::kServerNameMismatch},
        {in_records(make_hello({server_name("index.example.")})), Reason::kServerNameMismatch},
        {in_records(make_hello({server_name("127.0.0.1")})), Reason::kServerNameMismatch},
        {in_records(make_hello({})), Reason::kNoServerName},
        {in_records(make_hello({server_name(kIndexHost), {0xFE0D, "x"}})),
         Reason::kEncryptedClientHello},
        {"GET / HTTP/1.1\r\nHost: index.example\r\n\r\n", Reason::kNotTls},
        {"SSH-2.0-OpenSSH\r\n", Reason::kNotTls},
        {in_records(make_hello({server_name(kIndexHost), server_name(kIndexHost)})),
         Reason::kNotTls},
        {in_records(make_hello(
             {server_name(kIndexHost),
              {21, std::string(limits::kEgressClientHelloBytesMax, '\0')}})),
         Reason::kClientHelloTooLarge},
    }));
    Wire wire = fixture.connect();
    wire.send(connect_head(index_authority(server)));
    CHECK(wire.read_until("\r\n\r\n") == kEstablished);
    wire.send(first);
    wire.end_sending();
    const std::string said = wire.read_all();
    CHECK(said.substr(0, 5) == std::string("\x15\x03\x03\x00\x02", 5));  // an alert, nothing else
    CHECK(said.size() == 7);
    const auto record = fixture.wait_for_records(1)[0];
    CHECK(code_of(record.reason) == code_of(reason));
    CHECK(record.bytes_up == 0);
}

TEST_CASE("a tunnel without a ClientHello ends", "[egress][tunnel]") {
    const FakeServer server(echo);
    ProxyLimits limits;
    limits.head_timeout = milliseconds(50);
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(connect_head(index_authority(server)));
    CHECK(wire.read_until("\r\n\r\n") == kEstablished);
    (void)wire.read_all();
    CHECK(fixture.wait_for_records(1)[0].reason == Reason::kHeadTimeout);
}

TEST_CASE("a tunnel through which nothing goes ends", "[egress][tunnel]") {
    const FakeServer server(echo);
    ProxyLimits limits;
    limits.idle_timeout = milliseconds(100);
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(connect_head(index_authority(server)));
    CHECK(wire.read_until("\r\n\r\n") == kEstablished);
    wire.send(in_records(make_hello({server_name(kIndexHost)})));
    CHECK(wire.read_all().empty());
    CHECK(fixture.wait_for_records(1)[0].reason == Reason::kIdleTimeout);
}

TEST_CASE("a tunnel ends with the bytes that a session may send and receive", "[egress][tunnel]") {
    const FakeServer server(echo);
    const std::string hello = in_records(make_hello({server_name(kIndexHost)}));
    ProxyLimits limits;
    Reason reason = Reason::kAllowed;
    SECTION("up") {
        limits.bytes_up_max = hello.size() + 3;
        reason = Reason::kBytesUpLimit;
    }
    SECTION("down") {
        limits.bytes_down_max = hello.size() + 4 + 5 - 1;
        reason = Reason::kBytesDownLimit;
    }
    SECTION("exactly as many") {
        limits.bytes_up_max = hello.size() + 4;
        limits.bytes_down_max = hello.size() + 4 + 5;
    }
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(connect_head(index_authority(server)) + hello);
    CHECK(wire.read_until("\r\n\r\n") == kEstablished);
    wire.send("more");
    wire.end_sending();
    (void)wire.read_all();
    CHECK(code_of(fixture.wait_for_records(1)[0].reason) == code_of(reason));
}

TEST_CASE("a CONNECT that is refused says why", "[egress][tunnel]") {
    const FakeServer server(echo);
    ProxyFixture fixture({.allow = {index_authority(server), "private.example:443"}});
    resolve_to_loopback(fixture);
    fixture.resolver().answers["private.example"] = {{boost::asio::ip::make_address("10.0.0.1")}};
    const auto [head, code] = GENERATE_REF(table<std::string, std::string>({
        {"CONNECT other.example:443 HTTP/1.1\r\n\r\n", "not_allowed"},
        {"CONNECT private.example:443 HTTP/1.1\r\n\r\n", "address_refused"},
        {"CONNECT index.example HTTP/1.1\r\n\r\n", "bad_target"},
        {"CONNECT http://index.example:443/ HTTP/1.1\r\n\r\n", "bad_target"},
        {"CONNECT 0x7f000001:443 HTTP/1.1\r\n\r\n", "bad_target"},
        {"CONNECT [::ffff:7f00:1]:443 HTTP/1.1\r\n\r\n", "bad_target"},
        {"CONNECT user@index.example:443 HTTP/1.1\r\n\r\n", "bad_target"},
        {"CONNECT index.example.:443 HTTP/1.1\r\n\r\n", "bad_target"},
        {"CONNECT index.example:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "malformed"},
    }));
    CAPTURE(head);
    const std::string answer = fixture.ask(head);
    CHECK(denied(answer) == code);
    CHECK_THAT(answer, Contains("Connection: close"));
    CHECK(server.accepted() == 0);
}

TEST_CASE("a new list ends tunnels to what is no longer on it", "[egress][tunnel]") {
    const FakeServer server(echo);
    ProxyFixture fixture({.allow = {index_authority(server)}});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(connect_head(index_authority(server)));
    CHECK(wire.read_until("\r\n\r\n") == kEstablished);
    fixture.run([&] { fixture.proxy().set_allow({}); });
    CHECK(wire.read_all().empty());
    CHECK(fixture.wait_for_records(1)[0].reason == Reason::kPolicyChanged);
}

TEST_CASE("HTTP/1.0 clients may connect too", "[egress][tunnel]") {
    const FakeServer server(echo);
    ProxyFixture fixture({.allow = {index_authority(server)}});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send("CONNECT " + index_authority(server) + " HTTP/1.0\r\n\r\n");
    CHECK(wire.read_until("\r\n\r\n") == kEstablished);
}
