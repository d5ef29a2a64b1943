// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/base_url.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http {
namespace {

using Place = BaseUrl::Place;

TEST_CASE("a base URL starts and ends with a slash", "[http][base_url]") {
    CHECK(BaseUrl().text() == "/");
    for (const char* text : {"/user/anna/", "user/anna", "/user/anna", "//user/anna//"}) {
        CAPTURE(text);
        CHECK(BaseUrl::parse(text).value().text() == "/user/anna/");
    }
    for (const char* text : {"", "/", "//"}) {
        CHECK(BaseUrl::parse(text).value().text() == "/");
    }
}

TEST_CASE("what is not a path is refused", "[http][base_url]") {
    const std::string text = GENERATE(
        as<std::string>(),
        "/a//b",
        "/a/../b",
        "/./a",
        "/a?b",
        "/a#b",
        "/a b",
        "/a%zz",
        "/a\r\nb",
        "/a\"b",
        "a\\b");
    CAPTURE(text);
    CHECK(BaseUrl::parse(text).has_error());
}

TEST_CASE("a target inside loses the base", "[http][base_url]") {
    const BaseUrl base = BaseUrl::parse("/user/an%20na").value();
    const auto enter = [&base](const char* text) {
        Target target = parse_target(text).value();
        const Place place = base.enter(target);
        return std::pair(place, target.segments);
    };
    using Segments = std::vector<std::string>;
    CHECK(enter("/user/an%20na/") == std::pair(Place::kInside, Segments()));
    CHECK(
        enter("/user/an%20na/api/kernels") ==
        std::pair(Place::kInside, Segments({"api", "kernels"})));
    CHECK(enter("/user/an%20na").first == Place::kBare);
    CHECK(enter("/").first == Place::kOutside);
    CHECK(enter("/user").first == Place::kOutside);
    CHECK(enter("/user/").first == Place::kOutside);
    CHECK(enter("/user/anna/api").first == Place::kOutside);
    CHECK(enter("/user/an%20nax/api").first == Place::kOutside);
    CHECK(enter("/api/kernels").first == Place::kOutside);
    CHECK(enter("/user%2Fan%20na/api").first == Place::kOutside);
}

TEST_CASE("an address on this server gets the base once", "[http][base_url]") {
    const BaseUrl base = BaseUrl::parse("/b/").value();
    CHECK(base.qualify("/api/kernels/1") == "/b/api/kernels/1");
    CHECK(base.qualify("/b/api/kernels/1") == "/b/api/kernels/1");
    CHECK(base.qualify("/bc") == "/b/bc");
    CHECK(base.qualify("https://elsewhere.example/") == "https://elsewhere.example/");
    CHECK(base.qualify("").empty());
    CHECK(BaseUrl().qualify("/api") == "/api");
}

}  // namespace
}  // namespace cellkeep::http
