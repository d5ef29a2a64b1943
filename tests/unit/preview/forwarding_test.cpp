// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/forwarding.hpp"

#include "kernel-manager/preview/credentials.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::preview {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kPortHost = "80-0123.localhost:8888";

bool is_server_token(std::string_view text) {
    return text == "secret";
}

PreviewPlace place_of(bool own_host) {
    PreviewPlace place;
    place.port = 80;
    place.own_host = own_host;
    place.prefix = own_host ? "" : "/p";
    place.target = "/x?y";
    return place;
}

std::string head_of(const Fields& fields, bool own_host, bool upgrade = false) {
    http::Request request;
    request.method = "GET";
    request.headers.add("Host", own_host ? kPortHost : "127.0.0.1:8888");
    for (const auto& [name, value] : fields) {
        request.headers.add(name, value);
    }
    if (upgrade) {
        request.websocket.emplace();
    }
    return make_inner_head(
        request, place_of(own_host), framing_of(request), "http", is_server_token);
}

/// The lines of a head that the fields, and nothing else, have brought.
std::string passed(const Fields& fields, bool own_host) {
    const std::string without = head_of({}, own_host);
    const std::string head = head_of(fields, own_host);
    const std::size_t begin = head.find("\r\n", head.find("Host: ")) + 2;
    return head.substr(begin, head.size() - without.size());
}

egress::MessageHead answer_with(const Fields& fields) {
    egress::MessageHead head;
    head.status = 200;
    for (const auto& [name, value] : fields) {
        head.fields.push_back({name, value});
    }
    return head;
}

TEST_CASE("a request is written anew for the server inside", "[preview]") {
    CHECK(
        head_of({}, false) ==
        "GET /x?y HTTP/1.1\r\nHost: localhost:80\r\nX-Forwarded-Host: 127.0.0.1:8888\r\n"
        "X-Forwarded-Proto: http\r\nX-Forwarded-Prefix: /p\r\nConnection: close\r\n\r\n");
    CHECK(
        head_of({}, true) ==
        "GET /x?y HTTP/1.1\r\nHost: 80-0123.localhost:8888\r\n"
        "X-Forwarded-Host: 80-0123.localhost:8888\r\nX-Forwarded-Proto: http\r\n"
        "Connection: close\r\n\r\n");
    CHECK(
        head_of({{"Content-Length", "5"}}, true).find("Content-Length: 5\r\n") !=
        std::string::npos);
    const std::string chunked = head_of({{"Transfer-Encoding", "chunked"}}, true);
    CHECK(chunked.find("Transfer-Encoding: chunked\r\n") != std::string::npos);
    CHECK(chunked.find("Content-Length") == std::string::npos);
}

TEST_CASE("what is of one connection or of this server stays outside", "[preview]") {
    const bool own_host = GENERATE(true, false);
    for (const char* name :
         {"Keep-Alive",
          "Proxy-Connection",
          "Proxy-Authorization",
          "TE",
          "Trailer",
          "Upgrade",
          "Expect",
          "Forwarded",
          "X-Forwarded-For",
          "x-forwarded-prefix",
          "X-Real-IP",
          "X-Access-Token",
          "E2b-Sandbox-Id",
          "E2B-Traffic-Access-Token",
          "Cellkeep-Preview-Token",
          "Sec-WebSocket-Key"}) {
        CAPTURE(name);
        CHECK(passed({{name, "x"}}, own_host).empty());
    }
    CHECK(passed({{"Connection", "X-Hop, close"}, {"X-Hop", "1"}}, own_host).empty());
    CHECK(passed({{"Accept", "a"}, {"X-Own", "1"}}, own_host) == "Accept: a\r\nX-Own: 1\r\n");
}

TEST_CASE("no credential of this server goes inside, and those of others do", "[preview]") {
    for (const char* value :
         {"Bearer secret",
          "token secret",
          "bearer  secret",
          "secret",
          "Custom secret",
          "Basic c2VjcmV0",                 // secret
          "Basic eDpzZWNyZXQ=",             // x:secret
          "Basic c2VjcmV0Og==",             // secret:
          "basic c2VjcmV0OnNlY3JldA=="}) {  // secret:secret
        CAPTURE(value);
        CHECK(passed({{"Authorization", value}}, true).empty());
        CHECK(passed({{"Authorization", value}}, false).empty());
    }
    CHECK(passed({{"X-API-Key", " secret "}}, true).empty());
    CHECK(passed({{"X-API-Key", "theirs"}}, true) == "X-API-Key: theirs\r\n");
    CHECK(passed({{"Authorization", "Bearer theirs"}}, true) == "Authorization: Bearer theirs\r\n");
    CHECK(passed({{"Authorization", "Basic !"}}, true) == "Authorization: Basic !\r\n");
    // At a path of this server the field is this server's, whatever it holds.
    CHECK(passed({{"Authorization", "Bearer theirs"}}, false).empty());
}

TEST_CASE("cookies of this server's host stay outside", "[preview]") {
    CHECK(passed({{"Cookie", "a=1; b=2"}}, false).empty());
    CHECK(passed({{"Cookie", "a=1; b=2"}}, true) == "Cookie: a=1; b=2\r\n");
    CHECK(passed({{"Cookie", "cellkeep_preview=x"}}, true).empty());
    CHECK(
        passed({{"Cookie", "a=1;cellkeep_preview=x ; cellkeep_preview=y"}}, true) ==
        "Cookie: a=1\r\n");
    http::Request request;
    CHECK(preview_cookies(request).empty());
    request.headers.add("Cookie", "a=1; cellkeep_preview");
    request.headers.add("cookie", "b=2; cellkeep_preview = x=y ; cellkeep_preview=z");
    CHECK(preview_cookies(request) == std::vector<std::string>{"x=y", "z"});
    for (std::size_t i = 0; i < kTokenCookiesMax; ++i) {
        request.headers.add("Cookie", "cellkeep_preview=more");
    }
    CHECK(preview_cookies(request).size() == kTokenCookiesMax);
}

TEST_CASE("a page's address goes inside if it is the server's own and has no token", "[preview]") {
    CHECK(passed({{"Referer", "http://80-0123.localhost:8888/a"}}, true).size() > 2);
    CHECK(passed({{"Origin", "http://80-0123.localhost:8888"}}, true).size() > 2);
    for (const char* value :
         {"http://localhost:8888/",
          "http://80-0123.localhost:8888/?token=x",
          "http://80-0123.localhost:8888.evil.example/",
          "80-0123.localhost:8888",
          ""}) {
        CAPTURE(value);
        CHECK(passed({{"Referer", value}}, true).empty());
    }
    CHECK(passed({{"Referer", "http://127.0.0.1:8888/"}, {"Origin", "http://x"}}, false).empty());
}

TEST_CASE("a WebSocket is asked for with what the handshake needs", "[preview]") {
    const std::string head = head_of(
        {{"Upgrade", "websocket"},
         {"Connection", "keep-alive, Upgrade"},
         {"Sec-WebSocket-Key", "k"},
         {"Sec-WebSocket-Protocol", "p"}},
        true,
        true);
    CHECK(head.find("Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n") != std::string::npos);
    CHECK(head.find("Sec-WebSocket-Key: k\r\nSec-WebSocket-Protocol: p\r\n") != std::string::npos);
    const auto switched = make_switch_headers(
        answer_with(
            {{"upgrade", "WebSocket"},
             {"Connection", "Upgrade"},
             {"Sec-WebSocket-Accept", "a"},
             {"Sec-WebSocket-Extensions", "e"},
             {"X-Other", "1"},
             {"Set-Cookie", "c=1; Domain=localhost"}}),
        place_of(true));
    REQUIRE(switched.has_value());
    CHECK(
        switched->all() == Fields{
                               {"Upgrade", "websocket"},
                               {"Sec-WebSocket-Accept", "a"},
                               {"Sec-WebSocket-Extensions", "e"},
                               {"Set-Cookie", "c=1"}});
    for (const Fields& wrong :
         {Fields{},
          Fields{{"Upgrade", "websocket"}},
          Fields{{"Upgrade", "h2c"}, {"Sec-WebSocket-Accept", "a"}},
          Fields{{"Upgrade", "websocket"}, {"Upgrade", "h2c"}, {"Sec-WebSocket-Accept", "a"}},
          Fields{
              {"Upgrade", "websocket"},
              {"Sec-WebSocket-Accept", "a"},
              {"Sec-WebSocket-Accept", "b"}}}) {
        CHECK_FALSE(make_switch_headers(answer_with(wrong), place_of(true)).has_value());
    }
}

TEST_CASE("an answer reaches no further than its own address", "[preview]") {
    const auto answer = answer_with(
        {{"Content-Type", "text/html"},
         {"Content-Length", "5"},
         {"Connection", "X-Hop"},
         {"X-Hop", "1"},
         {"Date", "d"},
         {"Server", "s"},
         {"Alt-Svc", "h3"},
         {"Clear-Site-Data", "\"*\""},
         {"Strict-Transport-Security", "max-age=1"},
         {"NEL", "{}"},
         {"report-to", "{}"},
         {"Set-Cookie", "a=1; domain = localhost; Path=/; DOMAIN=.x"},
         {"Set-Cookie", "cellkeep_preview=x"},
         {"Set-Cookie", "domain=kept"},
         {"Access-Control-Allow-Origin", "*"},
         {"Service-Worker-Allowed", "/"},
         {"WWW-Authenticate", "Basic"},
         {"Location", "/next"}});
    const auto own = make_outer_headers(answer, place_of(true), kPortHost);
    REQUIRE(own.has_value());
    CHECK(
        own->all() == Fields{
                          {"Content-Type", "text/html"},
                          {"Set-Cookie", "a=1; Path=/"},
                          {"Set-Cookie", "domain=kept"},
                          {"Access-Control-Allow-Origin", "*"},
                          {"Service-Worker-Allowed", "/"},
                          {"WWW-Authenticate", "Basic"},
                          {"Location", "/next"}});
    const auto path = make_outer_headers(answer, place_of(false), "127.0.0.1:8888");
    REQUIRE(path.has_value());
    CHECK(
        path->all() == Fields{
                           {"Content-Type", "text/html"},
                           {"Location", "/p/next"},
                           {"Content-Security-Policy", "sandbox"},
                           {"X-Content-Type-Options", "nosniff"}});
    const auto home = answer_with({{"Location", "http://localhost:8888/v1/sessions"}});
    CHECK_FALSE(make_outer_headers(home, place_of(true), kPortHost).has_value());
}

}  // namespace
}  // namespace cellkeep::preview
