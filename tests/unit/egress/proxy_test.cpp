// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/egress/proxy_fixture.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;

namespace {

constexpr const char* kOkWithDeny =
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Cellkeep-Deny: x\r\n\r\nok";

std::string port_of(const FakeServer& server) {
    return std::to_string(server.port());
}

std::string get_path(const std::string& authority, const std::string& fields = "") {
    return "GET http://" + authority + "/path?q HTTP/1.1\r\nHost: " + authority + "\r\n" + fields +
           "\r\n";
}

Resolver::Addresses loopback() {
    return {boost::asio::ip::make_address("127.0.0.1")};
}

}  // namespace

TEST_CASE(
    "an allowed request goes on in origin form, without what is the connection's",
    "[egress][proxy]") {
    std::vector<std::string> requests;
    const FakeServer server(answer_with(kOkWithDeny, &requests));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}});
    fixture.resolver().answers["index.example"] = {loopback()};
    const std::string answer = fixture.ask(get_path(
        authority,
        "Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nX-Hop: 1\r\n"
        "Connection: keep-alive, X-Hop\r\nUpgrade: h2c\r\nTE: trailers\r\nAccept: */*\r\n"));
    CHECK(status_in(answer) == 200);
    CHECK_THAT(answer, Contains("\r\n\r\nok"));
    CHECK(denied(answer).empty());  // only the proxy says that
    REQUIRE(requests.size() == 1);
    CHECK(
        requests[0] == "GET /path?q HTTP/1.1\r\nHost: " + authority +
                           "\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    const auto records = fixture.wait_for_records(1);
    CHECK(records[0].reason == Reason::kAllowed);
    CHECK(records[0].session == "ses_test");
    CHECK(records[0].address == "127.0.0.1");
    CHECK(records[0].status == 200);
    CHECK(records[0].bytes_up == requests[0].size());
    CHECK(records[0].bytes_down == std::string(kOkWithDeny).size());
}

TEST_CASE("what is not allowed is refused before anything is looked up", "[egress][proxy]") {
    const FakeServer server(answer_with(kOkWithDeny));
    const std::string allowed = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {allowed}});
    fixture.resolver().answers["other.example"] = {loopback()};
    for (const std::string& other :
         {"other.example:" + port_of(server),
          std::string("index.example"),
          std::string("index.example:1"),
          "a.index.example:" + port_of(server),
          "127.0.0.1:" + port_of(server)}) {
        CAPTURE(other);
        const std::string answer = fixture.ask(get_path(other));
        CHECK(status_in(answer) == 403);
        CHECK(denied(answer) == "not_allowed");
        const auto problem = nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
        CHECK(problem.at("code") == "not_allowed");
        CHECK(problem.at("status") == 403);
        CHECK_FALSE(problem.at("hint").get<std::string>().empty());
        CHECK_FALSE(problem.at("host").get<std::string>().empty());
        const std::string tunnel = fixture.ask("CONNECT " + other + " HTTP/1.1\r\n\r\n");
        CHECK_THAT(tunnel, !Contains("200"));
    }
    CHECK(fixture.resolver().asked.empty());
    CHECK(server.accepted() == 0);
    CHECK(fixture.proxy().traffic().denied == 10);
}

TEST_CASE("every other spelling of a target is refused", "[egress][proxy]") {
    ProxyFixture fixture({.allow = {"127.0.0.1:80", "index.example:80"}});
    for (const char* target :
         {"http://2130706433/",
          "http://0x7f000001/",
          "http://0177.0.0.1/",
          "http://127.1/",
          "http://[::ffff:127.0.0.1]/",
          "http://[::ffff:7f00:1]/",
          "http://[64:ff9b::7f00:1]/",
          "http://index.example./",
          "http://user@index.example/",
          "http://index.example:80@127.0.0.1/",
          "http://index.example#/",
          "http://index.example%2e/",
          "https://index.example/",
          "ftp://index.example/",
          "/",
          "index.example:80"}) {
        CAPTURE(target);
        const std::string answer =
            fixture.ask("GET " + std::string(target) + " HTTP/1.1\r\nHost: index.example\r\n\r\n");
        CHECK(status_in(answer) == 400);
        CHECK(denied(answer) == "bad_target");
    }
    CHECK(fixture.resolver().asked.empty());
}

TEST_CASE("addresses that are not public are refused whatever the name", "[egress][proxy]") {
    const FakeServer server(answer_with(kOkWithDeny));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority, "127.0.0.1:" + port_of(server)}, .permitted = {}});
    for (const char* text :
         {"127.0.0.1",
          "10.0.0.1",
          "169.254.169.254",
          "::1",
          "::ffff:127.0.0.1",
          "64:ff9b::7f00:1",
          "fd00:ec2::254",
          "fe80::1",
          "0.0.0.0",
          "224.0.0.1",
          "100.64.0.1"}) {
        CAPTURE(text);
        fixture.run([&] {
            fixture.resolver().answers["index.example"] = {{boost::asio::ip::make_address(text)}};
        });
        const std::string answer = fixture.ask(get_path(authority));
        CHECK(status_in(answer) == 403);
        CHECK(denied(answer) == "address_refused");
    }
    CHECK(denied(fixture.ask(get_path("127.0.0.1:" + port_of(server)))) == "address_refused");
    CHECK(server.accepted() == 0);
}

TEST_CASE(
    "a name is looked up once for each connection, and what was judged is dialled",
    "[egress][proxy]") {
    const FakeServer server(answer_with(kOkWithDeny));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}, .permitted = {"127.0.0.1"}});
    // The second answer, which a second lookup would see, is this host's metadata service.
    fixture.resolver().answers["index.example"] = {
        loopback(), {boost::asio::ip::make_address("169.254.169.254")}};
    CHECK(status_in(fixture.ask(get_path(authority))) == 200);
    CHECK(fixture.resolver().asked["index.example"] == 1);
    CHECK(denied(fixture.ask(get_path(authority))) == "address_refused");
    CHECK(fixture.resolver().asked["index.example"] == 2);
    CHECK(server.accepted() == 1);
}

TEST_CASE("of a name's addresses only those that may be reached are dialled", "[egress][proxy]") {
    const FakeServer server(answer_with(kOkWithDeny));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}, .permitted = {"127.0.0.1"}});
    fixture.resolver().answers["index.example"] = {
        {boost::asio::ip::make_address("10.0.0.1"),
         boost::asio::ip::make_address("::1"),
         boost::asio::ip::make_address("127.0.0.1")}};
    CHECK(status_in(fixture.ask(get_path(authority))) == 200);
    CHECK(fixture.wait_for_records(1)[0].address == "127.0.0.1");
}

TEST_CASE("Host must be there once and be the target", "[egress][proxy]") {
    ProxyFixture fixture({.allow = {"index.example:80", "other.example:80"}});
    const auto ask = [&](const std::string& fields) {
        return fixture.ask("GET http://index.example/ HTTP/1.1\r\n" + fields + "\r\n");
    };
    CHECK(denied(ask("Host: other.example\r\n")) == "host_mismatch");
    CHECK(status_in(ask("Host: other.example\r\n")) == 421);
    CHECK(denied(ask("Host: index.example:81\r\n")) == "host_mismatch");
    CHECK(denied(ask("Host: index.example.\r\n")) == "host_mismatch");
    CHECK(denied(ask("Host:\r\n")) == "host_mismatch");
    CHECK(denied(ask("")) == "malformed");
    CHECK(denied(ask("Host: index.example\r\nHost: index.example\r\n")) == "malformed");
    CHECK(denied(ask("Host: index.example\r\nHOST: other.example\r\n")) == "malformed");
    CHECK(
        denied(
            fixture.ask("CONNECT index.example:80 HTTP/1.1\r\nHost: other.example:80\r\n\r\n")) ==
        "host_mismatch");
}

TEST_CASE("methods that do not go on are refused", "[egress][proxy]") {
    ProxyFixture fixture({.allow = {"index.example:80"}});
    for (const char* method : {"TRACE", "TRACK", "get", "PROPFIND", "connect", "FOO", "PRI"}) {
        CAPTURE(method);
        const std::string answer = fixture.ask(
            std::string(method) + " http://index.example/ HTTP/1.1\r\nHost: index.example\r\n\r\n");
        CHECK(status_in(answer) == 405);
        CHECK(denied(answer) == "method_refused");
    }
}

TEST_CASE("what could be two requests is none", "[egress][proxy]") {
    const FakeServer server(answer_with(kOkWithDeny));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}});
    fixture.resolver().answers["index.example"] = {loopback()};
    const std::string smuggled = "GET http://index.example/ HTTP/1.1\r\n\r\n";
    for (const char* fields :
         {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
          "Content-Length: 4\r\nContent-Length: 0\r\n",
          "Transfer-Encoding: chunked, identity\r\n",
          "Transfer-Encoding : chunked\r\n",
          "X: y\r\n Transfer-Encoding: chunked\r\n"}) {
        CAPTURE(fields);
        const std::string answer = fixture.ask(
            "POST http://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n" + fields +
            "\r\n0\r\n\r\n" + smuggled);
        CHECK(status_in(answer) == 400);
        CHECK(denied(answer) == "malformed");
        CHECK(answer.find("HTTP/1.1", 1) == std::string::npos);  // one answer, and closed
    }
    CHECK(server.accepted() == 0);
}

TEST_CASE("a connection serves requests one after another", "[egress][proxy]") {
    std::vector<std::string> requests;
    const FakeServer server(answer_with(kOkWithDeny, &requests));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}});
    fixture.resolver().answers["index.example"] = {loopback()};
    Wire wire = fixture.connect();
    // A refusal in the middle, and two at once, do not end it.
    wire.send(get_path(authority));
    CHECK(status_in(wire.read_message()) == 200);
    wire.send(get_path("other.example"));
    CHECK(status_in(wire.read_message()) == 403);
    wire.send(get_path(authority) + get_path(authority));
    CHECK(status_in(wire.read_message()) == 200);
    CHECK(status_in(wire.read_message()) == 200);
    wire.send(get_path(authority, "Connection: close\r\n"));
    CHECK_THAT(wire.read_message(), Contains("Connection: close"));
    CHECK(wire.read_all().empty());
    CHECK(requests.size() == 4);
}

TEST_CASE("a body goes up with its length or in chunks", "[egress][proxy]") {
    std::vector<std::string> requests;
    const FakeServer server([&](Wire& wire) {
        std::string request = wire.read_until("\r\n\r\n");
        request += request.find("chunked") != std::string::npos ? wire.read_until("0\r\n\r\n")
                                                                : wire.read_exactly(5);
        requests.push_back(request);
        wire.send(kOkWithDeny);
    });
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}});
    fixture.resolver().answers["index.example"] = {loopback()};
    const std::string begin =
        "POST http://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n";
    CHECK(status_in(fixture.ask(begin + "Content-Length: 5\r\n\r\nhello")) == 200);
    CHECK(
        status_in(fixture.ask(
            begin +
            "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nT: x\r\n\r\n")) ==
        200);
    REQUIRE(requests.size() == 2);
    CHECK_THAT(requests[0], Contains("Content-Length: 5\r\n") && Contains("\r\n\r\nhello"));
    CHECK_THAT(requests[1], Contains("chunked") && !Contains("a=b") && !Contains("T: x"));
}

TEST_CASE("a client that waits for 100 Continue gets it from the proxy", "[egress][proxy]") {
    std::vector<std::string> requests;
    const FakeServer server(answer_with(kOkWithDeny, &requests));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}});
    fixture.resolver().answers["index.example"] = {loopback()};
    Wire wire = fixture.connect();
    wire.send(
        "POST http://" + authority + "/ HTTP/1.1\r\nHost: " + authority +
        "\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    CHECK(wire.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    wire.send("hello");
    CHECK(status_in(wire.read_message()) == 200);
    REQUIRE(requests.size() == 1);
    CHECK_THAT(requests[0], !Contains("Expect"));
}

TEST_CASE("answers of every framing come through", "[egress][proxy]") {
    const auto [from_server, to_client] = GENERATE(table<std::string, std::string>({
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
         "Content-Length: 2\r\nConnection: keep-alive\r\n\r\nok"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
         "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
        {"HTTP/1.0 200 OK\r\n\r\nok",
         "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
        {"HTTP/1.1 204 No Content\r\n\r\n", "Connection: keep-alive\r\n\r\n"},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
         "Content-Length: 9\r\nConnection: keep-alive\r\n\r\n"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
         "Content-Length: 0\r\nConnection: keep-alive\r\n\r\n"},
    }));
    const FakeServer server(answer_with(from_server));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}});
    fixture.resolver().answers["index.example"] = {loopback()};
    CHECK_THAT(fixture.ask(get_path(authority)), Catch::Matchers::EndsWith(to_client));
}

TEST_CASE("a malformed answer of the server is a 502", "[egress][proxy]") {
    const auto [from_server, code] = GENERATE(table<std::string, std::string>({
        {"nonsense\r\n\r\n", "upstream_protocol"},
        {"", "upstream_closed"},
        {"HTTP/1.1 200 OK\r\nContent-", "upstream_closed"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "upstream_protocol"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "upstream_protocol"},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "upstream_protocol"},
        {"HTTP/1.1 200 OK\r\nX: " + std::string(limits::kEgressHeadBytesMax, 'x') + "\r\n\r\n",
         "upstream_protocol"},
    }));
    const FakeServer server(answer_with(from_server));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}});
    fixture.resolver().answers["index.example"] = {loopback()};
    const std::string answer = fixture.ask(get_path(authority));
    CHECK(status_in(answer) == 502);
    CHECK(denied(answer) == code);
}

TEST_CASE("an answer that is cut off is not ended for its client", "[egress][proxy]") {
    const FakeServer server(
        answer_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"));
    const std::string authority = "index.example:" + port_of(server);
    ProxyFixture fixture({.allow = {authority}});
    fixture.resolver().answers["index.example"] = {loopback()};
    CHECK_THAT(fixture.ask(get_path(authority)), !Contains("0\r\n\r\n"));
    CHECK(fixture.wait_for_records(1)[0].reason == Reason::kUpstreamClosed);
}

TEST_CASE("a name without an address and a port without a server are 502", "[egress][proxy]") {
    std::uint16_t nobody = 0;
    {
        const FakeServer gone(answer_with(kOkWithDeny));
        nobody = gone.port();
    }
    const std::string authority = "index.example:" + std::to_string(nobody);
    ProxyFixture fixture({.allow = {authority}});
    CHECK(denied(fixture.ask(get_path(authority))) == "resolve_failed");
    fixture.run([&] { fixture.resolver().answers["index.example"] = {loopback()}; });
    const std::string answer = fixture.ask(get_path(authority));
    CHECK(status_in(answer) == 502);
    CHECK(denied(answer) == "connect_failed");
}
