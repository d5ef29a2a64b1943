// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/head.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

TEST_CASE("a head has its status line, length and connection", "[http][head]") {
    Response response;
    response.status = 404;
    response.headers.add("X", "y");
    response.body = std::string("12345");
    const std::string head = serialize_head(response, After::kClose);
    CHECK_THAT(head, StartsWith("HTTP/1.1 404 Not Found\r\n"));
    CHECK_THAT(head, Contains("\r\nX: y\r\n"));
    CHECK_THAT(head, Contains("\r\nContent-Length: 5\r\n"));
    CHECK_THAT(head, Contains(" GMT\r\n"));
    CHECK_THAT(head, EndsWith("Connection: close\r\n\r\n"));
    CHECK_THAT(serialize_head(response, After::kKeepAlive), Contains("Connection: keep-alive"));
}

TEST_CASE("an answer is not stored unless it says so itself, and says it once", "[http][head]") {
    CHECK_THAT(
        serialize_head(make_empty(200), After::kClose),
        Contains("\r\nCache-Control: no-store\r\n") &&
            Contains("\r\nX-Content-Type-Options: nosniff\r\n"));
    Response response;
    response.headers.add("cache-control", "max-age=60");
    const std::string head = serialize_head(response, After::kClose);
    CHECK_THAT(head, Contains("\r\ncache-control: max-age=60\r\n") && !Contains("no-store"));
}

TEST_CASE("204 has no length", "[http][head]") {
    CHECK_THAT(serialize_head(make_empty(204), After::kClose), !Contains("Content-Length"));
}

TEST_CASE("a value cannot end its line", "[http][head]") {
    Response response;
    response.headers.add("X", std::string("a\r\nSet-Cookie: b\0c", 19));
    const std::string head = serialize_head(response, After::kClose);
    CHECK_THAT(head, !Contains("\nSet-Cookie"));
    CHECK(head.find('\0') == std::string::npos);
}

}  // namespace
}  // namespace cellkeep::http
