// SPDX-License-Identifier: Apache-2.0
//
// Refused requests count like others, and do not fill the log.
#include "tests/unit/egress/index_host.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;
using std::chrono::minutes;

namespace {

constexpr const char* kElsewhere =
    "GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n";

}  // namespace

TEST_CASE("a malformed request counts as a request", "[egress][refusals]") {
    ProxyLimits limits;
    limits.requests_per_minute_max = 2;
    limits.head_bytes_max = 200;
    ProxyFixture fixture({.allow = {kIndexHost}, .limits = limits});
    const std::string wrong = GENERATE(
        std::string("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
        "GET / HTTP/1.1\r\nX: " + std::string(300, 'x') + "\r\n\r\n",
        std::string("\x16\x03\x01\r\n\r\n"));
    CAPTURE(wrong);
    for (int i = 0; i < 2; ++i) {
        CHECK(denied(fixture.ask(wrong)) != "too_many_requests");
    }
    CHECK(denied(fixture.ask(wrong)) == "too_many_requests");
    CHECK(denied(fixture.ask(kElsewhere)) == "too_many_requests");
}

TEST_CASE("one connection too many counts as a request", "[egress][refusals]") {
    ProxyLimits limits;
    limits.connections_max = 0;
    limits.requests_per_minute_max = 1;
    ProxyFixture fixture({.allow = {kIndexHost}, .limits = limits});
    CHECK(denied(fixture.ask("")) == "too_many_connections");
    CHECK(denied(fixture.ask("")) == "too_many_requests");
}

TEST_CASE("a client that asks too often must connect again", "[egress][refusals]") {
    ProxyLimits limits;
    limits.requests_per_minute_max = 1;
    ProxyFixture fixture({.allow = {kIndexHost}, .limits = limits});
    Wire wire = fixture.connect();
    wire.send(kElsewhere);
    CHECK_THAT(wire.read_message(), Contains("not_allowed") && Contains("keep-alive"));
    wire.send(std::string(kElsewhere) + kElsewhere);
    CHECK_THAT(wire.read_message(), Contains("429") && Contains("Connection: close"));
    CHECK(wire.read_all().empty());
}

TEST_CASE(
    "kRefusalsLoggedPerMinuteMax refusals get a record, the others are counted",
    "[egress][refusals]") {
    ProxyLimits limits;
    CHECK(limits.refusals_logged_per_minute_max == kRefusalsLoggedPerMinuteMax);
    limits.refusals_logged_per_minute_max = 2;
    const FakeServer server(answer_with(kOkAnswer));
    ProxyFixture fixture({.allow = {index_authority(server)}, .limits = limits});
    resolve_to_loopback(fixture);
    for (int i = 0; i < 5; ++i) {
        CHECK(denied(fixture.ask(kElsewhere)) == "not_allowed");
    }
    CHECK(status_in(fixture.ask(get_request(index_authority(server)))) == 200);
    const auto records = fixture.wait_for_records(3);
    REQUIRE(records.size() == 3);
    CHECK(records[1].reason == Reason::kNotAllowed);
    CHECK(records[1].suppressed == 0);
    CHECK(records[2].reason == Reason::kAllowed);
    CHECK(records[2].suppressed == 3);
    fixture.run([&] { CHECK(fixture.proxy().traffic().denied == 5); });
    // The proxy reports the rest when the session ends.
    CHECK(denied(fixture.ask(kElsewhere)) == "not_allowed");
    fixture.wait_for_connections(0);
    fixture.run([&] { fixture.proxy().close(); });
    const auto last = fixture.wait_for_records(4).back();
    CHECK(last.suppressed == 1);
    CHECK(last.session == "ses_test");
    CHECK(last.reason == Reason::kSessionEnded);
}

TEST_CASE("a record has no method that the proxy does not know", "[egress][refusals]") {
    ProxyFixture fixture({.allow = {kIndexHost}});
    const std::string method(20'000, 'M');
    CHECK(
        denied(fixture.ask(
            method + " http://index.example/ HTTP/1.1\r\nHost: index.example\r\n\r\n")) ==
        "method_refused");
    CHECK(fixture.wait_for_records(1)[0].method == "other");
}

TEST_CASE("connections that are being refused take no place", "[egress][refusals]") {
    ProxyLimits limits;
    limits.connections_max = 2;
    limits.goodbye_timeout = minutes(10);
    ProxyFixture fixture({.allow = {kIndexHost}, .limits = limits});
    auto first = std::make_unique<Wire>(fixture.connect());
    const Wire second = fixture.connect();
    fixture.wait_for_connections(2);
    Wire refused = fixture.connect();
    CHECK(denied(refused.read_message()) == "too_many_connections");
    first.reset();
    fixture.wait_for_connections(2);
    // One is served, one has been refused and stays.
    Wire again = fixture.connect();
    again.send(kElsewhere);
    CHECK(denied(again.read_message()) == "not_allowed");
}
