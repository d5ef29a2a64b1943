// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/message/proxy_request.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;

namespace {

MessageHead head(std::string method, std::string target, std::vector<Field> fields) {
    MessageHead made;
    made.method = std::move(method);
    made.target = std::move(target);
    made.fields = std::move(fields);
    return made;
}

const Authority kRequestTarget{{"api.example", false}, 443};

}  // namespace

TEST_CASE("inside a tunnel that ends here requests have origin form", "[egress][request]") {
    const auto good =
        read_inner_request(head("GET", "/a?b", {{"Host", "API.example"}}), kRequestTarget);
    REQUIRE(good.has_value());
    CHECK(good.value().origin == "/a?b");
    CHECK(good.value().target == kRequestTarget);
    CHECK(read_inner_request(head("GET", "/", {{"Host", "api.example:443"}}), kRequestTarget)
              .has_value());
    for (const char* target :
         {"http://api.example/",
          "https://api.example/",
          "*",
          "",
          "a",
          "//evil\\",
          "/a#b",
          "/a b"}) {
        CAPTURE(target);
        CHECK(
            read_inner_request(head("GET", target, {{"Host", "api.example"}}), kRequestTarget)
                .error()
                .reason == Reason::kBadTarget);
    }
    for (const char* host :
         {"other.example",
          "api.example:80",
          "api.example.",
          "",
          "a@api.example",
          "api.example, api.example"}) {
        CAPTURE(host);
        CHECK(
            read_inner_request(head("GET", "/", {{"Host", host}}), kRequestTarget).error().reason ==
            Reason::kHostMismatch);
    }
    CHECK(
        read_inner_request(head("GET", "/", {}), kRequestTarget).error().reason ==
        Reason::kMalformed);
    CHECK(
        read_inner_request(
            head("CONNECT", "a.example:443", {{"Host", "api.example"}}), kRequestTarget)
            .error()
            .reason == Reason::kMethodRefused);
}

TEST_CASE(
    "the head for a server has no field that is dropped, and what is added", "[egress][request]") {
    const MessageHead asked = head(
        "GET",
        "/",
        {{"host", "api.example"},
         {"AUTHORIZATION", "placeholder"},
         {"Cookie", "a=b"},
         {"connection", "close, x-one , X-Two"},
         {"X-One", "1"},
         {"x-two", "2"},
         {"Trailer", "x"},
         {"Keep-Alive", "5"},
         {"Accept", "*/*"}});
    const ProxyRequest request{false, "GET", kRequestTarget, "/"};
    const std::string text = make_upstream_head(
        asked,
        request,
        443,
        {Framing::Kind::kLength, 7},
        {"Authorization", "Cookie"},
        {{"Authorization", "Bearer real"}});
    CHECK(
        text ==
        "GET / HTTP/1.1\r\nHost: api.example\r\nAccept: */*\r\nAuthorization: Bearer real\r\n"
        "Content-Length: 7\r\nConnection: close\r\n\r\n");
}

TEST_CASE("the head for a client says how its body ends", "[egress][request]") {
    MessageHead answer;
    answer.status = 404;
    answer.reason = "Not Found";
    answer.fields = {{"Transfer-Encoding", "chunked"}, {"Set-Cookie", "a"}, {"Set-Cookie", "b"}};
    const std::string chunked =
        make_client_head(answer, {Framing::Kind::kChunked, 0}, Afterwards::kKeepAlive);
    CHECK(
        chunked ==
        "HTTP/1.1 404 Not Found\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
        "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n");
    CHECK_THAT(
        make_client_head(answer, {Framing::Kind::kUntilClose, 0}, Afterwards::kClose),
        Contains("Connection: close") && !Contains("chunked"));
}

TEST_CASE("a chunk has its length in front", "[egress][request]") {
    CHECK(make_chunk("hello") == "5\r\nhello\r\n");
    CHECK(make_chunk(std::string(300, 'a')).starts_with("12c\r\n"));
    CHECK(make_chunk("") == "0\r\n\r\n");
}
