// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/egress/index_host.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;
using std::chrono::milliseconds;

TEST_CASE(
    "a session has kEgressConnectionsMax connections, the next one is refused with the reason",
    "[egress][limits]") {
    ProxyLimits limits;
    CHECK(limits.connections_max == limits::kEgressConnectionsMax);
    limits.connections_max = 3;
    const FakeServer server(answer_with(kOkAnswer));
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    std::vector<std::unique_ptr<Wire>> wires;
    for (int i = 0; i < 3; ++i) {
        wires.push_back(std::make_unique<Wire>(fixture.connect()));
        wires.back()->send(get_request(index_authority(server)));
        CHECK(status_in(wires.back()->read_message()) == 200);
    }
    Wire one_more = fixture.connect();
    const std::string answer = one_more.read_message();
    CHECK(status_in(answer) == 503);
    CHECK(denied(answer) == "too_many_connections");
    CHECK_THAT(answer, Contains("Retry-After"));
    one_more.end_sending();
    CHECK(one_more.read_all().empty());
    // The open connections still work.
    wires[0]->send(get_request(index_authority(server)));
    CHECK(status_in(wires[0]->read_message()) == 200);
}

TEST_CASE("one request more than a minute allows is answered 429", "[egress][limits]") {
    ProxyLimits limits;
    limits.requests_per_minute_max = 2;
    const FakeServer server(answer_with(kOkAnswer));
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    CHECK(status_in(fixture.ask(get_request(index_authority(server)))) == 200);
    CHECK(status_in(fixture.ask(get_request(index_authority(server)))) == 200);
    const std::string answer = fixture.ask(get_request(index_authority(server)));
    CHECK(status_in(answer) == 429);
    CHECK(denied(answer) == "too_many_requests");
}

TEST_CASE("a head of the greatest size passes, one byte more is answered 431", "[egress][limits]") {
    ProxyLimits limits;
    limits.head_bytes_max = 200;
    const FakeServer server(answer_with(kOkAnswer));
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    const std::size_t rest = get_request(index_authority(server), "X: \r\n").size();
    const auto sized = [&](std::size_t size) {
        return get_request(index_authority(server), "X: " + std::string(size - rest, 'a') + "\r\n");
    };
    CHECK(status_in(fixture.ask(sized(200))) == 200);
    const std::string answer = fixture.ask(sized(201));
    CHECK(status_in(answer) == 431);
    CHECK(denied(answer) == "head_too_large");
}

TEST_CASE("a request that does not come to its end is answered 408", "[egress][limits]") {
    ProxyLimits limits;
    limits.head_timeout = milliseconds(50);
    ProxyFixture fixture({.allow = {"index.example"}, .limits = limits});
    Wire wire = fixture.connect();
    wire.send("GET http://index.example/ HT");
    const std::string answer = wire.read_message();
    CHECK(status_in(answer) == 408);
    CHECK(denied(answer) == "head_timeout");
    CHECK(wire.read_all().empty());
}

TEST_CASE("a connection that asks nothing is closed without a word", "[egress][limits]") {
    ProxyLimits limits;
    limits.idle_timeout = milliseconds(50);
    ProxyFixture fixture({.allow = {"index.example"}, .limits = limits});
    Wire wire = fixture.connect();
    CHECK(wire.read_all().empty());
    CHECK(fixture.proxy().traffic().requests == 0);
}

TEST_CASE("a server that does not answer is a 504", "[egress][limits]") {
    ProxyLimits limits;
    limits.idle_timeout = milliseconds(200);
    const FakeServer server([](Wire& wire) { (void)wire.read_all(); });
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(get_request(index_authority(server)));
    const std::string answer = wire.read_message();
    CHECK(status_in(answer) == 504);
    CHECK(denied(answer) == "upstream_timeout");
}

TEST_CASE("the bytes of a session's life end with the last that is allowed", "[egress][limits]") {
    const FakeServer server(answer_with(kOkAnswer));
    const std::string authority = index_authority(server);
    const std::string up = "GET / HTTP/1.1\r\nHost: " + authority + "\r\nConnection: close\r\n\r\n";
    ProxyLimits limits;
    SECTION("up") {
        limits.bytes_up_max = 2 * up.size() - 1;
        ProxyFixture fixture({.allow = {authority}, .limits = limits});
        resolve_to_loopback(fixture);
        CHECK(status_in(fixture.ask(get_request(authority))) == 200);
        const std::string answer = fixture.ask(get_request(authority));
        CHECK(status_in(answer) == 403);
        CHECK(denied(answer) == "bytes_up_limit");
    }
    SECTION("up, all of it") {
        limits.bytes_up_max = 2 * up.size();
        ProxyFixture fixture({.allow = {authority}, .limits = limits});
        resolve_to_loopback(fixture);
        CHECK(status_in(fixture.ask(get_request(authority))) == 200);
        CHECK(status_in(fixture.ask(get_request(authority))) == 200);
        CHECK(denied(fixture.ask(get_request(authority))) == "bytes_up_limit");
    }
    SECTION("down") {
        limits.bytes_down_max = 2 * std::string(kOkAnswer).size() - 1;
        ProxyFixture fixture({.allow = {authority}, .limits = limits});
        resolve_to_loopback(fixture);
        CHECK(status_in(fixture.ask(get_request(authority))) == 200);
        CHECK(denied(fixture.ask(get_request(authority))) == "bytes_down_limit");
    }
    SECTION("down, all of it") {
        limits.bytes_down_max = std::string(kOkAnswer).size();
        ProxyFixture fixture({.allow = {authority}, .limits = limits});
        resolve_to_loopback(fixture);
        CHECK(status_in(fixture.ask(get_request(authority))) == 200);
        CHECK(denied(fixture.ask(get_request(authority))) == "bytes_down_limit");
    }
}

TEST_CASE("a new list ends connections to what is no longer on it", "[egress][limits]") {
    const FakeServer server([](Wire& wire) {
        (void)wire.read_message();
        wire.send("HTTP/1.1 200 OK\r\n\r\nbegin");
        (void)wire.read_all();
    });
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(get_request(authority));
    CHECK_THAT(wire.read_until("begin"), Contains("200 OK"));
    // A connection to an allowed host goes on.
    fixture.run([&] {
        fixture.proxy().set_allow(
            {parse_allowed_host(authority).value(), parse_allowed_host("a.example").value()});
    });
    CHECK(fixture.proxy().connections() == 1);
    fixture.run([&] { fixture.proxy().set_allow({}); });
    CHECK_THAT(wire.read_all(), !Contains("0\r\n\r\n"));
    CHECK(fixture.wait_for_records(1)[0].reason == Reason::kPolicyChanged);
    CHECK(denied(fixture.ask(get_request(authority))) == "not_allowed");
}

TEST_CASE("the end of the session ends its connections and its listener", "[egress][limits]") {
    const FakeServer server([](Wire& wire) {
        (void)wire.read_message();
        wire.send("HTTP/1.1 200 OK\r\n\r\nbegin");
        (void)wire.read_all();
    });
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire idle = fixture.connect();
    Wire busy = fixture.connect();
    busy.send(get_request(authority));
    CHECK_THAT(busy.read_until("begin"), Contains("200 OK"));
    fixture.run([&] { fixture.proxy().close(); });
    (void)busy.read_all();
    (void)idle.read_all();
    CHECK(fixture.wait_for_records(1)[0].reason == Reason::kSessionEnded);
    CHECK_THROWS(fixture.connect());
}

TEST_CASE("a proxy has the time limits of the table unless it gets others", "[egress][limits]") {
    const ProxyLimits limits;
    CHECK(limits.head_timeout == limits::kEgressHeadTimeout);
    CHECK(limits.resolve_timeout == limits::kEgressResolveTimeout);
    CHECK(limits.connect_timeout == limits::kEgressConnectTimeout);
    CHECK(limits.idle_timeout == limits::kEgressIdleTimeout);
    CHECK(limits.bytes_up_max == limits::kEgressBytesUpMax);
    CHECK(limits.bytes_down_max == limits::kEgressBytesDownMax);
}

TEST_CASE("a name that is not resolved in time is a 504", "[egress][limits]") {
    ProxyLimits limits;
    limits.resolve_timeout = milliseconds(50);
    ProxyFixture fixture({.allow = {"index.example:80"}, .limits = limits});
    fixture.resolver().silent = kIndexHost;
    const std::string answer = fixture.ask(get_request("index.example:80"));
    CHECK(status_in(answer) == 504);
    CHECK(denied(answer) == "resolve_timeout");
}

TEST_CASE("a server that does not take the connection is a 504", "[egress][limits]") {
    const DeafListener deaf("127.0.0.1");
    const std::string authority = std::string(kIndexHost) + ":" + std::to_string(deaf.port());
    ProxyLimits limits;
    limits.connect_timeout = milliseconds(100);
    ProxyFixture fixture({.allow = {authority}, .limits = limits});
    resolve_to_loopback(fixture);
    const std::string answer = fixture.ask(get_request(authority));
    CHECK(status_in(answer) == 504);
    CHECK(denied(answer) == "connect_timeout");
}
