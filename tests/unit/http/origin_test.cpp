// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/access/origin.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http {
namespace {

using Catch::Matchers::Contains;

Request from(const char* origin, const char* host = "localhost:8888") {
    Request request;
    request.method = "POST";
    request.headers.add("Host", host);
    if (origin != nullptr) {
        request.headers.add("Origin", origin);
    }
    return request;
}

TEST_CASE("an origin is the server's own if its host is that of the request", "[http][origin]") {
    CHECK(is_own_origin("http://localhost:8888", "localhost:8888"));
    CHECK(is_own_origin("https://Lab.Example", "lab.example"));
    CHECK(is_own_origin("http://lab.example", "lab.example:80"));
    CHECK(is_own_origin("https://lab.example:443", "lab.example"));
    CHECK(is_own_origin("http://[::1]:8888", "[::1]:8888"));

    CHECK_FALSE(is_own_origin("http://localhost:8889", "localhost:8888"));
    CHECK_FALSE(is_own_origin("http://localhost", "localhost:8888"));
    CHECK_FALSE(is_own_origin("https://lab.example", "lab.example:80"));
    CHECK_FALSE(is_own_origin("http://evil.example", "localhost:8888"));
    CHECK_FALSE(is_own_origin("http://localhost:8888.evil.example", "localhost:8888"));
    CHECK_FALSE(is_own_origin("http://evil.example/localhost:8888", "localhost:8888"));
    CHECK_FALSE(is_own_origin("localhost:8888", "localhost:8888"));
    CHECK_FALSE(is_own_origin("null", "localhost:8888"));
    CHECK_FALSE(is_own_origin("", ""));
    CHECK_FALSE(is_own_origin("http://", ""));
}

TEST_CASE("without configuration only the own origin is admitted", "[http][origin]") {
    const OriginPolicy policy;
    CHECK(policy.admits(from(nullptr)));
    CHECK(policy.admits(from("http://localhost:8888")));
    CHECK_FALSE(policy.admits(from("http://evil.example")));
    CHECK_FALSE(policy.admits(from("null")));
    CHECK_FALSE(policy.admits(from("")));
    Request preflight = from("http://evil.example");
    preflight.method = "OPTIONS";
    preflight.headers.add("Access-Control-Request-Method", "POST");
    CHECK_FALSE(policy.is_preflight(preflight));
    Response response = make_empty(204);
    policy.add_headers(from("http://evil.example"), response);
    CHECK(response.headers.all().empty());
}

TEST_CASE("configured origins are compared exactly", "[http][origin]") {
    const auto policy = OriginPolicy::create({"https://lab.example:8443", "http://a.example"});
    REQUIRE(policy.has_value());
    CHECK(policy.value().admits(from("https://lab.example:8443")));
    CHECK(policy.value().admits(from("http://a.example")));
    CHECK_FALSE(policy.value().admits(from("https://lab.example")));
    CHECK_FALSE(policy.value().admits(from("http://lab.example:8443")));
    CHECK_FALSE(policy.value().admits(from("https://a.example")));
    CHECK_FALSE(policy.value().admits(from("http://xa.example")));
    CHECK_FALSE(policy.value().admits(from("http://a.example.evil.example")));
    CHECK_FALSE(policy.value().admits(from("null")));
    const auto any = OriginPolicy::create({"*"});
    REQUIRE(any.has_value());
    CHECK(any.value().admits(from("http://evil.example")));
    CHECK(any.value().admits(from("null")));
}

TEST_CASE("what a browser would never send is no origin", "[http][origin]") {
    const std::string text = GENERATE(
        as<std::string>(),
        "",
        "lab.example",
        "https://",
        "://lab.example",
        "https://lab.example/",
        "https://lab.example/path",
        "https://Lab.example",
        "https://*.example",
        "https://user@lab.example",
        "https://lab.example\r\nX: y",
        "null",
        "**");
    CAPTURE(text);
    const auto policy = OriginPolicy::create({text});
    REQUIRE(policy.has_error());
    CHECK_THAT(policy.error().message(), Contains("allow-origin"));
}

TEST_CASE("a configured origin may read answers, no other may", "[http][origin]") {
    const auto policy = OriginPolicy::create({"http://a.example"}).value();
    Response allowed = make_empty(404);
    policy.add_headers(from("http://a.example"), allowed);
    CHECK(allowed.headers.get("Access-Control-Allow-Origin") == "http://a.example");
    CHECK_THAT(
        std::string(allowed.headers.get("Access-Control-Expose-Headers")), Contains("Location"));
    CHECK(allowed.headers.get("Vary") == "Origin");
    CHECK(allowed.headers.find("Access-Control-Allow-Credentials") == nullptr);
    Response other = make_empty(200);
    policy.add_headers(from("http://b.example"), other);
    CHECK(other.headers.find("Access-Control-Allow-Origin") == nullptr);
    CHECK(other.headers.get("Vary") == "Origin");
}

}  // namespace
}  // namespace cellkeep::http
