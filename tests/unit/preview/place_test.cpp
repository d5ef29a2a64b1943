// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/preview_place.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

namespace cellkeep::preview {
namespace {

bool is_known_token(std::string_view text) {
    return text == "secret";
}

http::Request request_for(const std::string& target, const std::string& host) {
    http::Request request;
    auto parsed = http::parse_target(target);
    REQUIRE(parsed.has_value());
    request.target = std::move(parsed).value();
    request.headers.add("Host", host);
    return request;
}

TEST_CASE("a port is written in one way", "[preview]") {
    CHECK(parse_port("1") == 1);
    CHECK(parse_port("65535") == 65535);
    for (const char* text :
         {"", "0", "01", "65536", "-1", "+1", " 1", "1 ", "1x", "x", "99999999"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_port(text).has_value());
    }
}

TEST_CASE("the path behind the port is passed on as it was spelled", "[preview]") {
    const std::string prefix = "/v1/sessions/ses_1/ports/80";
    for (const char* path :
         {"/", "/a", "/a/", "/a%2Fb", "/%61", "//", "//a", "/a//b", "/a;b=c/@:!$&'()*+,="}) {
        CAPTURE(path);
        const PreviewPlace place =
            find_place(request_for(prefix + path, "127.0.0.1"), "ses_1", 80, 5, is_known_token);
        CHECK(place.target == path);
        CHECK(place.prefix == prefix);
        CHECK_FALSE(place.own_host);
    }
    const PreviewPlace bare =
        find_place(request_for(prefix, "127.0.0.1"), "ses_1", 80, 5, is_known_token);
    CHECK(bare.target == "/");
    CHECK(bare.prefix == prefix);
}

TEST_CASE("at a host of its own the whole path is the server's inside", "[preview]") {
    for (const char* path : {"/", "/a", "/a/", "/a%2Fb/c"}) {
        CAPTURE(path);
        http::Request request = request_for(path, "80-0123.localhost:8888");
        auto& segments = request.target.segments;
        segments.insert(segments.begin(), {"e2b", "0123", "80"});
        const PreviewPlace place = find_place(request, "ses_0123", 80, 3, is_known_token);
        CHECK(place.target == path);
        CHECK(place.prefix.empty());
        CHECK(place.own_host);
    }
}

TEST_CASE("a host that names another port, or no session, is not the port's own", "[preview]") {
    const std::string path = "/v1/sessions/ses_0123/ports/80/a";
    for (const char* host :
         {"81-0123.localhost",
          "80-0124.localhost",
          "1-x.localhost",
          "80-ses_0123.localhost",
          "80-0123.localhost:x",
          "localhost",
          ""}) {
        CAPTURE(host);
        const PreviewPlace place =
            find_place(request_for(path, host), "ses_0123", 80, 5, is_known_token);
        CHECK_FALSE(place.own_host);
        CHECK(place.bears_token);
    }
}

TEST_CASE("below a base URL the prefix has no slash at its end", "[preview]") {
    http::Request request = request_for("/base/", "127.0.0.1");
    request.target.segments = {"e2b", "0123", "80"};
    const PreviewPlace place = find_place(request, "ses_0123", 80, 3, is_known_token);
    CHECK(place.prefix == "/base");
    CHECK(place.target == "/");
}

TEST_CASE("a client with a token in a field is known", "[preview]") {
    const auto bears = [](const std::string& name, const std::string& value) {
        http::Request request = request_for("/", "80-0123.localhost");
        request.headers.add(name, value);
        return find_place(request, "ses_0123", 80, 0, is_known_token).bears_token;
    };
    CHECK(bears("Authorization", "Bearer secret"));
    CHECK(bears("X-API-Key", "secret"));
    CHECK(bears("X-Access-Token", "of the sandbox"));
    CHECK(bears("e2b-traffic-access-token", "of the sandbox"));
    CHECK_FALSE(bears("Authorization", "Bearer theirs"));
    CHECK_FALSE(bears("X-API-Key", "theirs"));
    CHECK_FALSE(bears("Cookie", "cellkeep_preview=x"));
    CHECK_FALSE(bears("Cellkeep-Preview-Token", "of this port alone"));
}

TEST_CASE("an address with a token of the server is known", "[preview]") {
    const auto holds = [](const std::string& target) {
        return address_holds_secret(request_for(target, "localhost"), is_known_token);
    };
    for (const char* target :
         {"/?token=secret",
          "/?%74oken=%73ecret",
          "/?token=theirs&token=secret",
          "/x?a&token=secret"}) {
        CAPTURE(target);
        CHECK(holds(target));
    }
    for (const char* target :
         {"/", "/?token=theirs", "/?token", "/?Token=secret", "/secret", "/?cellkeep_token=x"}) {
        CAPTURE(target);
        CHECK_FALSE(holds(target));
    }
    http::Request by_path = request_for("/token/-/x", "localhost");
    by_path.target.query.insert_or_assign("token", "secret");
    CHECK(address_holds_secret(by_path, is_known_token));
}

TEST_CASE("a query loses its tokens and nothing else", "[preview]") {
    CHECK(without_tokens("", is_known_token).empty());
    CHECK(without_tokens("a=1&b", is_known_token) == "a=1&b");
    CHECK(without_tokens("a=%20&a=+", is_known_token) == "a=%20&a=+");
    CHECK(without_tokens("cellkeep_token=x", is_known_token).empty());
    CHECK(without_tokens("a&cellkeep_token&b&cellkeep_token=", is_known_token) == "a&b");
    CHECK(without_tokens("%63ellkeep_token=x&a", is_known_token) == "a");
    CHECK(without_tokens("token=secret&a&%74oken=%73ecret", is_known_token) == "a");
    CHECK(
        without_tokens("token=theirs&Token=secret", is_known_token) == "token=theirs&Token=secret");
    CHECK(decode_query_text("%4a%zz%4+a%") == "J%zz%4 a%");
}

}  // namespace
}  // namespace cellkeep::preview
