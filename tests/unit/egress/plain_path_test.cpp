// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/plain_path.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace cellkeep::egress;

TEST_CASE("a path with one reading is plain", "[egress][plain_path]") {
    const std::string plain = GENERATE(
        as<std::string>(),
        "/",
        "/v1",
        "/v1/",
        "/v1/items",
        "/v1/items?next=/../x;y",
        "/a.b/.c/d..",
        "/.well-known/x",
        "/v1/file.tar.gz",
        "/v1/a%20b",
        "/v1/a%2Bb%3Ac%40d%3f%23",
        "/v1/%7euser",
        "/v1/K%C3%B6ln",
        "/v1/%e6%97%a5%e6%9c%ac",
        "/v1/%F0%9F%8C%8D.png",
        "/v1/!$&'()*+,=:@-_~");
    CAPTURE(plain);
    CHECK(is_plain_path(plain));
}

TEST_CASE("a path that some server reads as another is not plain", "[egress][plain_path]") {
    const std::string odd = GENERATE(
        as<std::string>(),
        // Empty and dot segments.
        "//",
        "/v1//x",
        "/v1/../admin",
        "/v1/..",
        "/v1/.",
        "/./v1",
        "/v1/./x",
        "/v1/.../admin",
        "/v1/..x/admin",
        "/v1/../?a",
        // Encoded once or twice.
        "/v1/%2e%2e/admin",
        "/v1/%2E./admin",
        "/v1/.%2e/admin",
        "/v1%2fadmin",
        "/v1%5Cadmin",
        "/v1/..\\admin",
        "/v1/%252e%252e/",
        "/v1/%00",
        // Parameters, cut off before or after dots are resolved.
        "/v1;x/../",
        "/v1/..;/admin",
        "/v1/..%3b/admin",
        "/v1/..%3B/admin",
        "/v1/.;/x",
        "/v1/x%3bp=1/y",
        // What a server drops at the ends of a segment.
        "/v1/..%09/admin",
        "/v1/%09../admin",
        "/v1/..%20/admin",
        "/v1/%20../admin",
        "/v1/.%20./admin",
        "/v1/.%0a./admin",
        "/v1/..%0d/admin",
        "/v1/..%7f/admin",
        "/v1/..%1f",
        "/v1/..%23/admin",
        "/v1/..%3f/admin",
        "/v1/x%0d%0aHost:y",
        "/v1/.%c2%ad./admin",
        "/v1/..%c2%a0/admin",
        "/v1/%c2%a0.",
        "/v1/x%c2%85y",
        // Escapes that RFC 3986 does not have.
        "/v1/%u002e%u002e/admin",
        "/v1/%U002E",
        "/v1/%u2215admin",
        "/v1/%",
        "/v1/%2",
        "/v1/%2/",
        "/v1/%g0",
        "/v1/%-1",
        "/v1/x%",
        // Not well-formed UTF-8: overlong, cut off, surrogates, beyond Unicode.
        "/v1/%c0%ae%c0%ae/admin",
        "/v1/%C0%AF..",
        "/v1/%c1%9cadmin",
        "/v1/%e0%80%ae%e0%80%ae/admin",
        "/v1/%f0%80%80%ae/admin",
        "/v1/%fc%80%80%80%80%ae/admin",
        "/v1/%ae",
        "/v1/%c3",
        "/v1/%c3/",
        "/v1/%e6%97",
        "/v1/%ed%a0%80",
        "/v1/%f4%90%80%80",
        "/v1/%ff",
        "/v1/%fe",
        // Compatibility forms of a dot, a slash, a backslash, a percent sign and a semicolon.
        "/v1/%e2%80%a4%e2%80%a4/admin",
        "/v1/%e2%80%a5/admin",
        "/v1/%ef%bc%8e%ef%bc%8e/admin",
        "/v1/x%ef%bc%8fadmin",
        "/v1/x%ef%bc%bcadmin",
        "/v1/%ef%bc%852e",
        "/v1/%ef%b9%922",
        "/v1/%cd%be",
        "/v1/%e2%84%80",
        "/v1/%e2%92%88",
        "/v1/%e3%8f%82",
        "/v1/%f0%9f%84%80",
        "/v1/%ef%bb%bf..");
    CAPTURE(odd);
    CHECK_FALSE(is_plain_path(odd));
}
