// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/response.hpp"
#include "tests/unit/http/test_server.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http::test {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

TEST_CASE("a body in many pieces is one body with a length", "[http][connection]") {
    const TestServer server;
    std::string body = "[";
    for (int i = 0; i < 300; ++i) {
        body += (i == 0 ? "\"" : ",\"") + std::string(20'000, 'x') + "\"";
    }
    body += "]";
    const std::string answer = exchange(server.port(), request_text("GET", "/pieces"));
    CHECK_THAT(answer, Contains("Content-Length: " + std::to_string(body.size()) + "\r\n"));
    CHECK((answer.substr(answer.find("\r\n\r\n") + 4) == body));
    const std::string head = exchange(server.port(), request_text("HEAD", "/pieces"));
    CHECK_THAT(head, Contains("Content-Length: " + std::to_string(body.size()) + "\r\n"));
    CHECK_THAT(head, EndsWith("\r\n\r\n"));
}

TEST_CASE("a handler that throws is a 500 problem and the server lives", "[http][connection]") {
    const TestServer server;
    const std::string answer = exchange(server.port(), request_text("GET", "/throw"));
    CHECK_THAT(answer, StartsWith("HTTP/1.1 500 "));
    CHECK_THAT(answer, Contains("application/problem+json"));
    CHECK_THAT(exchange(server.port(), request_text("GET", "/ok")), Contains("200 OK"));
}

TEST_CASE("what is not HTTP gets a problem and a close", "[http][connection]") {
    const TestServer server;
    const auto [text, status] = GENERATE(table<std::string, std::string>({
        {"garbage\r\n\r\n", "400"},
        {"GET\r\n\r\n", "400"},
        {"GET /ok\r\n\r\n", "400"},
        {"GET /ok HTTP/2.0\r\n\r\n", "505"},
        {"GET /ok HTTP/1.1\r\nno colon\r\n\r\n", "400"},
        {"GET /ok HTTP/1.1\r\nHost : x\r\n\r\n", "400"},
        {"POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"},
        {"POST /echo HTTP/1.1\r\nContent-Length: 1x\r\n\r\n", "400"},
        {"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"},
        {"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
    }));
    CAPTURE(text);
    RawClient client(server.port());
    client.send(text);
    const std::string answer = client.read_all();
    CHECK_THAT(answer, StartsWith("HTTP/1.1 " + status + " "));
    CHECK_THAT(answer, Contains("application/problem+json"));
    CHECK_THAT(answer, Contains("Connection: close"));
}

}  // namespace cellkeep::http::test
