// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/target.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::http {
namespace {

using Segments = std::vector<std::string>;

TEST_CASE("a target is cut before it is decoded", "[http][target]") {
    const auto target = parse_target("/v1/a%2Fb/c%20d?x=1&y=a+b%26&x=2&flag");
    REQUIRE(target.has_value());
    CHECK(target.value().segments == Segments{"v1", "a/b", "c d"});
    CHECK(target.value().path == "/v1/a%2Fb/c%20d");
    CHECK(target.value().find_query("x") == "1");
    CHECK(target.value().find_query("y") == "a b&");
    CHECK(target.value().find_query("flag") == "");
    CHECK_FALSE(target.value().find_query("z").has_value());
}

TEST_CASE("the root, a trailing slash, the absolute form and * are understood", "[http][target]") {
    CHECK(parse_target("/").value().segments.empty());
    CHECK(parse_target("/a/").value().segments == Segments{"a", ""});
    CHECK(parse_target("/a//b").value().segments == Segments{"a", "", "b"});
    CHECK(parse_target("http://host:1/a?b=c").value().segments == Segments{"a"});
    CHECK(parse_target("http://host").value().segments.empty());
    CHECK(parse_target("http://host:1/a?b=c").value().authority == "host:1");
    CHECK(parse_target("https://[::1]").value().authority == "[::1]");
    CHECK(parse_target("/http://host").value().authority.empty());
    CHECK(parse_target("*").value().path == "*");
    CHECK(parse_target("/a+b").value().segments == Segments{"a+b"});
}

TEST_CASE("a target that is malformed or climbs is refused", "[http][target]") {
    const std::string text = GENERATE(
        as<std::string>(),
        "",
        "a",
        "?a",
        "host:80",
        "/%",
        "/%4",
        "/%4g",
        "/%zz",
        "/a%00b",
        "/..",
        "/../a",
        "/a/../b",
        "/a/..",
        "/.",
        "/a/./b",
        "/%2e%2e/a",
        "/%2E./a",
        "/a/.%2e",
        "/a?b=%",
        "/a?%0g=1",
        "/a?b=%00",
        "http://",
        "http:///a",
        "https://?a",
        "http://host?a",
        "http://host#a",
        "http://user@host/a",
        "http://localhost:80@evil.com/",
        "http:/host/a",
        "ftp://host/a",
        "//host/../a");
    CAPTURE(text);
    const auto target = parse_target(text);
    REQUIRE(target.has_error());
    CHECK(target.error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("an encoded segment decodes to itself", "[http][target]") {
    const std::string text = "a b/c%?#\xC3\xA9~";
    CHECK(encode_segment("ses_1-2.x~") == "ses_1-2.x~");
    CHECK(parse_target("/" + encode_segment(text)).value().segments == Segments{text});
}

}  // namespace
}  // namespace cellkeep::http
