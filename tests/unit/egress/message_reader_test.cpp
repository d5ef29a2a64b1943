// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/message/message_reader.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace cellkeep;
using namespace cellkeep::egress;
using Kind = MessageReader::Kind;

namespace {

/// Feeds everything, `piece` bytes at a time; returns the bytes that are left over.
Result<std::string> feed(MessageReader& reader, std::string bytes, std::size_t piece = 4096) {
    while (!bytes.empty() && !reader.done()) {
        BOOST_OUTCOME_TRY(const std::size_t taken, reader.feed(bytes.substr(0, piece)));
        bytes.erase(0, taken);
    }
    return bytes;
}

bool refused(Kind kind, const std::string& bytes) {
    MessageReader reader(kind);
    return feed(reader, bytes).has_error();
}

std::string get_with(const std::string& fields) {
    return "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n" + fields + "\r\n";
}

std::string post(const std::string& fields, const std::string& body = "") {
    return "POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\n" + fields + "\r\n" + body;
}

}  // namespace

TEST_CASE("a request is read in pieces of any size", "[egress][message]") {
    const std::size_t piece = GENERATE(1U, 2U, 3U, 7U, 4096U);
    MessageReader reader(Kind::kRequest);
    const auto rest = feed(
        reader, post("Content-Length: 5\r\nX-A:  b \r\n", "hello") + "GET / HTTP/1.1\r\n", piece);
    REQUIRE(rest.has_value());
    CHECK(rest.value().starts_with("GET /"));
    CHECK(reader.done());
    CHECK(reader.has_body());
    CHECK(reader.content_length() == 5U);
    CHECK(reader.take_body() == "hello");
    CHECK(reader.head().method == "POST");
    CHECK(reader.head().target == "http://example.org/");
    CHECK(values_of(reader.head(), "x-a").at(0) == "b");
    CHECK(reader.keep_alive());
}

TEST_CASE("a chunked body is decoded and its trailers are dropped", "[egress][message]") {
    const std::size_t piece = GENERATE(1U, 2U, 5U, 4096U);
    MessageReader reader(Kind::kRequest);
    const auto rest = feed(
        reader,
        post(
            "Transfer-Encoding: chunked\r\n",
            "5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nX-Late: 1\r\n\r\nnext"),
        piece);
    REQUIRE(rest.has_value());
    CHECK(rest.value() == "next");
    CHECK(reader.take_body() == "hello!");
    CHECK(values_of(reader.head(), "X-Late").empty());
    CHECK_FALSE(reader.content_length().has_value());
}

TEST_CASE("an answer ends with its length, its chunks or its connection", "[egress][message]") {
    MessageReader by_length(Kind::kResponse);
    REQUIRE(feed(by_length, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").has_value());
    CHECK(by_length.done());
    MessageReader by_close(Kind::kResponse);
    REQUIRE(feed(by_close, "HTTP/1.1 200 OK\r\n\r\nuntil the end").has_value());
    CHECK_FALSE(by_close.done());
    CHECK(by_close.has_body());
    CHECK(by_close.end().has_value());
    CHECK(by_close.take_body() == "until the end");
    for (const char* status : {"204 No Content", "304 Not Modified", "100 Continue"}) {
        MessageReader none(Kind::kResponse);
        REQUIRE(feed(none, "HTTP/1.1 " + std::string(status) + "\r\n\r\n").has_value());
        CHECK(none.done());
    }
    MessageReader to_head(Kind::kResponseToHead);
    REQUIRE(feed(to_head, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n").has_value());
    CHECK(to_head.done());
    CHECK(to_head.content_length() == 99U);
}

TEST_CASE("the reason of an answer may be empty, or missing", "[egress][message]") {
    const std::string line = GENERATE("HTTP/1.1 200 \r\n", "HTTP/1.1 200\r\n", "HTTP/1.0 200 \r\n");
    const std::size_t piece = GENERATE(1U, 4096U);
    CAPTURE(line);
    MessageReader reader(Kind::kResponse);
    const auto rest = feed(reader, line + "Content-Length: 2\r\n\r\nok", piece);
    REQUIRE(rest.has_value());
    CHECK(rest.value().empty());
    CHECK(reader.done());
    CHECK(reader.head().status == 200);
    CHECK(reader.head().reason.empty());
    CHECK(reader.take_body() == "ok");
    CHECK(refused(Kind::kRequest, line + "\r\n"));
    CHECK(refused(Kind::kResponse, " " + line + "\r\n"));
}

TEST_CASE("a message that ends early is no message", "[egress][message]") {
    for (const char* early :
         {"HTTP/1.1 200 OK\r\nContent-Le",
          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"}) {
        CAPTURE(early);
        MessageReader reader(Kind::kResponse);
        REQUIRE(feed(reader, early).has_value());
        CHECK(reader.end().has_error());
    }
}

TEST_CASE("a body whose end could be seen in two ways is refused", "[egress][message]") {
    for (const char* fields :
         {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
          "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
          "Content-Length: 5\r\nContent-Length: 5\r\n",
          "Content-Length: 5\r\nContent-Length: 6\r\n",
          "Content-Length: 5, 5\r\n",
          "Content-Length: 5,6\r\n",
          "Content-Length: +5\r\n",
          "Content-Length: -5\r\n",
          "Content-Length: 0x5\r\n",
          "Content-Length: 5 \x0B\r\n",
          "Content-Length: five\r\n",
          "Content-Length:\r\n",
          "Content-Length: 99999999999999999999999\r\n",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
          "Transfer-Encoding: chunked, chunked\r\n",
          "Transfer-Encoding: identity\r\n",
          "Transfer-Encoding: gzip, chunked\r\n",
          "Transfer-Encoding: chunked, identity\r\n",
          "Transfer-Encoding: xchunked\r\n",
          "Transfer-Encoding: \"chunked\"\r\n",
          "Transfer-Encoding:\r\n",
          "Transfer-Encoding : chunked\r\n",
          "Content-Length : 5\r\n",
          " Content-Length: 5\r\n",
          "X: y\r\n Content-Length: 5\r\n",
          "X: y\r\n\tTransfer-Encoding: chunked\r\n",
          "X: y\nContent-Length: 5\r\n",
          "X: y\rContent-Length: 5\r\n",
          "Transfer-Encoding: chunk\x01"
          "ed\r\n",
          "Transfer\x7F-Encoding: chunked\r\n"}) {
        CAPTURE(fields);
        CHECK(refused(Kind::kRequest, post(fields, "5\r\nhello\r\n0\r\n\r\n")));
    }
    CHECK(
        refused(Kind::kRequest, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
}

TEST_CASE("a head that is not well-formed is refused", "[egress][message]") {
    for (const char* bytes :
         {"\r\nGET / HTTP/1.1\r\n\r\n",
          " GET / HTTP/1.1\r\n\r\n",
          "GET  / HTTP/1.1\r\n\r\n",
          "GET / HTTP/1.1 \r\n\r\n",
          "GET /\r\n\r\n",
          "GET / HTTP/2.0\r\n\r\n",
          "GET / HTTP/0.9\r\n\r\n",
          "GET / http/1.1\r\n\r\n",
          "GET / HTTP/1.1\nHost: a\n\r\n\r\n",
          "GE(T / HTTP/1.1\r\n\r\n",
          "GET / HTTP/1.1\r\nno colon\r\n\r\n",
          "GET / HTTP/1.1\r\n: empty\r\n\r\n",
          "GET / HTTP/1.1\r\nA B: c\r\n\r\n",
          "GET / HTTP/1.1\r\nA@: c\r\n\r\n",
          "GET / HTTP/1.1\r\nA: \x01\r\n\r\n",
          "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
          "GET /\x7F HTTP/1.1\r\n\r\n",
          "\x16\x03\x01\x02\r\n\r\n"}) {
        CAPTURE(bytes);
        CHECK(refused(Kind::kRequest, bytes));
    }
    CHECK(refused(Kind::kRequest, std::string("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 26)));
    for (const char* bytes :
         {"HTTP/1.1 20 OK\r\n\r\n",
          "HTTP/1.1 OK\r\n\r\n",
          "ICY 200 OK\r\n\r\n",
          "HTTP/2 200\r\n\r\n",
          "HTTP/1.1 200 OK\r\n folded\r\n\r\n"}) {
        CAPTURE(bytes);
        CHECK(refused(Kind::kResponse, bytes));
    }
}

TEST_CASE("chunks that are not well-formed never make a whole message", "[egress][message]") {
    for (const char* body :
         {"x\r\n",
          "-1\r\n",
          "+1\r\na\r\n",
          "0x1\r\na\r\n0\r\n",
          "1\na\n0\n\n",
          "1\r\nab\r\n0\r\n\r\n",
          "fffffffffffffffff\r\n",
          " 1\r\na\r\n",
          "\r\n\r\n",
          "1;=\r\na\r\n",
          "0\r\nContent-Length: 3\r\n\r\n",
          "0\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
        CAPTURE(body);
        MessageReader reader(Kind::kRequest);
        const auto rest = feed(reader, post("Transfer-Encoding: chunked\r\n", body));
        CHECK((rest.has_error() || !reader.done()));
    }
}

TEST_CASE("a head may have kEgressHeadBytesMax bytes, not one more", "[egress][message]") {
    const std::size_t rest = get_with("X: \r\n").size();
    const std::string longest =
        get_with("X: " + std::string(limits::kEgressHeadBytesMax - rest, 'a') + "\r\n");
    REQUIRE(longest.size() == limits::kEgressHeadBytesMax);
    const std::size_t piece = GENERATE(1000U, 100'000U);
    MessageReader reader(Kind::kRequest);
    CHECK(feed(reader, longest, piece).has_value());
    CHECK(reader.done());
    MessageReader other(Kind::kRequest);
    const auto longer = feed(
        other,
        get_with("X: " + std::string(limits::kEgressHeadBytesMax - rest + 1, 'a') + "\r\n"),
        piece);
    REQUIRE(longer.has_error());
    CHECK(longer.error().code() == ErrorCode::kLimitExceeded);
    MessageReader endless(Kind::kRequest);
    CHECK(feed(endless, std::string(limits::kEgressHeadBytesMax + 1, 'a'), piece).has_error());
}

TEST_CASE("a head may have kEgressHeadersMax fields, not one more", "[egress][message]") {
    std::string fields;
    for (std::size_t i = 1; i < limits::kEgressHeadersMax; ++i) {
        fields += "X: y\r\n";  // Host is the first
    }
    MessageReader reader(Kind::kRequest);
    CHECK(feed(reader, get_with(fields)).has_value());
    MessageReader other(Kind::kRequest);
    const auto more = feed(other, get_with(fields + "X: y\r\n"));
    REQUIRE(more.has_error());
    CHECK(more.error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a line of a chunked body is as bounded as a head", "[egress][message]") {
    MessageReader reader(Kind::kRequest);
    const auto endless = feed(
        reader,
        post(
            "Transfer-Encoding: chunked\r\n",
            "1;x=" + std::string(limits::kEgressHeadBytesMax + 1, 'y')));
    REQUIRE(endless.has_error());
    CHECK(endless.error().code() == ErrorCode::kLimitExceeded);
    MessageReader trailers(Kind::kRequest);
    CHECK(feed(
              trailers,
              post(
                  "Transfer-Encoding: chunked\r\n",
                  "0\r\nX: " + std::string(limits::kEgressHeadBytesMax + 1, 'y')))
              .has_error());
}
