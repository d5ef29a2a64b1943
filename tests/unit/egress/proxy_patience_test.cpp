// SPDX-License-Identifier: Apache-2.0
//
// Every wait of a connection has a time limit, also after others have ended.
#include "kernel-manager/egress/watchdog.hpp"
#include "tests/unit/egress/index_host.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::egress;
using boost::asio::ip::make_address;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_CASE("a watchdog fires each time it was armed", "[egress][limits]") {
    boost::asio::io_context io;
    Watchdog watchdog(io.get_executor());
    int bitten = 0;
    watchdog.on_expiry([&] {
        ++bitten;
        watchdog.disarm();
    });
    for (int i = 1; i <= 3; ++i) {
        watchdog.arm(milliseconds(1));
        io.restart();
        (void)io.run_for(seconds(20));
        CHECK(bitten == i);
        CHECK(watchdog.expired());
    }
    watchdog.arm(milliseconds(1));
    CHECK_FALSE(watchdog.expired());
    watchdog.stop();
    io.restart();
    (void)io.run_for(seconds(20));
    CHECK(bitten == 3);
}

TEST_CASE("a watchdog fires again until it is answered", "[egress][limits]") {
    boost::asio::io_context io;
    Watchdog watchdog(io.get_executor());
    int bitten = 0;
    watchdog.on_expiry([&] {
        if (++bitten == 3) {
            watchdog.stop();
        }
    });
    watchdog.arm(milliseconds(1));
    (void)io.run_for(seconds(20));
    CHECK(bitten == 3);
}

TEST_CASE("a server that does not answer is a 504 each time it is asked", "[egress][limits]") {
    ProxyLimits limits;
    limits.idle_timeout = milliseconds(200);
    const FakeServer server([](Wire& wire) { (void)wire.read_all(); });
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        wire.send(get_request(index_authority(server)));
        CHECK(denied(wire.read_message()) == "upstream_timeout");
    }
}

TEST_CASE("a client that does not close after its 408 is closed", "[egress][limits]") {
    ProxyLimits limits;
    limits.head_timeout = milliseconds(50);
    limits.goodbye_timeout = milliseconds(50);
    ProxyFixture fixture({.allow = {kIndexHost}, .limits = limits});
    Wire wire = fixture.connect();
    wire.send("GET http://index.example/ HT");
    CHECK(denied(wire.read_message()) == "head_timeout");
    fixture.wait_for_connections(0);
}

TEST_CASE("a server's head that does not come to its end is a 504", "[egress][limits]") {
    ProxyLimits limits;
    limits.head_timeout = milliseconds(200);
    limits.idle_timeout = minutes(10);
    const FakeServer server([](Wire& wire) {
        (void)wire.read_message();
        wire.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: ");
        (void)wire.read_all();
    });
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(get_request(index_authority(server)));
    CHECK(denied(wire.read_message()) == "upstream_timeout");
}

TEST_CASE("an address that does not answer leaves time for the next one", "[egress][limits]") {
    const FakeServer server(answer_with(kOkAnswer));
    const DeafListener deaf("127.0.0.2", server.port());
    ProxyLimits limits;
    limits.connect_timeout = seconds(2);
    ProxyFixture fixture(
        {.allow = {index_authority(server)},
         .permitted = {"127.0.0.1", "127.0.0.2"},
         .limits = limits});
    fixture.resolver().answers[kIndexHost] = {
        {make_address("127.0.0.2"), make_address("127.0.0.1")}};
    CHECK(status_in(fixture.ask(get_request(index_authority(server)))) == 200);
}

TEST_CASE(
    "a host that is no longer allowed is not dialled after its name is resolved",
    "[egress][limits]") {
    const FakeServer server(answer_with(kOkAnswer));
    ProxyFixture fixture({.allow = {index_authority(server)}});
    resolve_to_loopback(fixture);
    fixture.resolver().held = kIndexHost;
    Wire wire = fixture.connect();
    wire.send(get_request(index_authority(server)));
    fixture.wait_until([&] { return fixture.resolver().asked[kIndexHost] == 1; });
    fixture.run([&] {
        fixture.proxy().set_allow({});
        fixture.resolver().held.clear();
    });
    CHECK(wire.read_all().empty());
    fixture.wait_for_connections(0);
    CHECK(fixture.wait_for_records(1)[0].reason == Reason::kPolicyChanged);
    // The server takes connections in order: one of the proxy's would have come before this one.
    boost::asio::io_context io;
    boost::asio::ip::tcp::socket socket(io);
    socket.connect({boost::asio::ip::address_v4::loopback(), server.port()});
    Wire direct(std::move(socket));
    direct.send("GET / HTTP/1.1\r\n\r\n");
    CHECK(direct.read_all() == kOkAnswer);
    CHECK(server.accepted() == 1);
}

TEST_CASE("a connection attempt ends when the list no longer allows it", "[egress][limits]") {
    const DeafListener deaf("127.0.0.1");
    ProxyLimits limits;
    limits.connect_timeout = minutes(10);
    ProxyFixture fixture({.allow = {index_authority(deaf.port())}, .limits = limits});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(get_request(index_authority(deaf.port())));
    fixture.wait_until([&] { return fixture.resolver().asked[kIndexHost] == 1; });
    fixture.run([&] { fixture.proxy().set_allow({}); });
    fixture.wait_for_connections(0);
    CHECK(fixture.wait_for_records(1)[0].reason == Reason::kPolicyChanged);
}
