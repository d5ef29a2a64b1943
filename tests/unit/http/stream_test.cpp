// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/streaming.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/http/certificate.hpp"
#include "tests/unit/http/test_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::http::test {
namespace {

namespace asio = boost::asio;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

const std::string kLines =
    "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\n";

/// The body behind a head, taken out of its chunks; without an incomplete chunk.
std::string unchunk(const std::string& answer) {
    std::size_t at = answer.find("\r\n\r\n") + 4;
    std::string body;
    while (at < answer.size()) {
        const std::size_t line = answer.find("\r\n", at);
        const std::size_t size = std::stoul(answer.substr(at, line - at), nullptr, 16);
        if (size == 0 || line + 2 + size > answer.size()) {
            break;
        }
        body += answer.substr(line + 2, size);
        at = line + 2 + size + 2;
    }
    return body;
}

TEST_CASE("a streamed body is chunked and the connection stays open", "[http][stream]") {
    const TestServer server;
    RawClient client(server.port());
    for (int i = 0; i < 3; ++i) {
        client.send(request_text("GET", "/stream/lines"));
        const std::string answer = client.read_until("\r\n0\r\n\r\n");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
        CHECK_THAT(answer, Contains("Transfer-Encoding: chunked\r\n"));
        CHECK_THAT(answer, !Contains("Content-Length"));
        CHECK(unchunk(answer) == kLines);
    }
    client.send(request_text("GET", "/stream/empty"));
    CHECK_THAT(client.read_until("0\r\n\r\n"), EndsWith("\r\n\r\n0\r\n\r\n"));
}

TEST_CASE("for HTTP/1.0 a streamed body ends with the connection", "[http][stream]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(
        "GET /stream/lines HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer t\r\n"
        "Connection: keep-alive\r\n\r\n");
    const std::string answer = client.read_all();
    CHECK_THAT(answer, !Contains("Transfer-Encoding"));
    CHECK_THAT(answer, !Contains("Content-Length"));
    CHECK_THAT(answer, Contains("Connection: close\r\n"));
    CHECK_THAT(answer, EndsWith("\r\n\r\n" + kLines));
}

TEST_CASE("HEAD of a stream writes no body and does not run it", "[http][stream]") {
    TestServer server;
    const std::string answer = exchange(server.port(), request_text("HEAD", "/stream/flood"));
    CHECK_THAT(answer, Contains("Transfer-Encoding: chunked\r\n"));
    CHECK_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_CASE("a stream that fails is cut off where it was", "[http][stream]") {
    const TestServer server;
    const auto* const target = GENERATE("/stream/cut", "/stream/throw");
    RawClient client(server.port());
    client.send(request_text("GET", target));
    const std::string answer = client.read_all();
    CHECK_THAT(answer, EndsWith("4\r\npart\r\n"));
    CHECK_THAT(exchange(server.port(), request_text("GET", "/ok")), Contains("200 OK"));
}

TEST_CASE("a client that goes is seen while nothing is written to it", "[http][stream]") {
    const TestServer server;
    {
        RawClient client(server.port());
        client.send(request_text("GET", "/stream/hold"));
        (void)client.read_until("begun\n");
    }
    server.wait_for_gone(1);
    {
        RawClient client(server.port());
        client.send(request_text("POST", "/stream/watch", "", "x"));
        client.send(request_text("GET", "/ok"));  // sent ahead, and then gone
    }
    server.wait_for_gone(2);
}

TEST_CASE("a reader that takes nothing is cut off at its deadline", "[http][stream]") {
    // limits::kHttpStreamStallMax
    ConnectionLimits limits;
    CHECK(limits.stream_stall_max == limits::kHttpStreamStallMax);
    limits.stream_stall_max = std::chrono::milliseconds(100);
    const TestServer server(limits);
    RawClient client(server.port());
    client.send(request_text("GET", "/stream/flood"));
    CHECK(server.last_send_error() == ErrorCode::kTimeout);
}

TEST_CASE("a reader that goes in the middle ends the writer", "[http][stream]") {
    const TestServer server;
    {
        RawClient client(server.port());
        client.send(request_text("GET", "/stream/flood"));
        (void)client.read_until("ffff");
    }
    CHECK(server.last_send_error() == ErrorCode::kUnavailable);
}

TEST_CASE(
    "a request that a client sends before a stream's end is answered after it", "[http][stream]") {
    // limits::kHttpAheadBytesMax: the most, one byte more, and far more
    ConnectionLimits limits;
    CHECK(limits.ahead_bytes_max == limits::kHttpAheadBytesMax);
    const std::string next = request_text("POST", "/echo", "", "ahead");
    limits.ahead_bytes_max = 10 * next.size();
    const TestServer server(limits);
    const std::size_t padding = GENERATE(0U, 1U, 5'000U);
    RawClient client(server.port());
    client.send(request_text("GET", "/stream/hold"));
    (void)client.read_until("begun\n");
    std::string ahead;
    for (int i = 0; i < 10; ++i) {
        ahead += next;
    }
    if (padding > 0) {
        ahead += request_text("POST", "/echo", "", std::string(padding % 1000 + 1, 'p'));
    }
    client.send(ahead);
    CHECK_THAT(exchange(server.port(), request_text("GET", "/stream/release")), Contains("204"));
    CHECK_THAT(client.read_until("0\r\n\r\n"), Contains("released"));
    for (int i = 0; i < 10; ++i) {
        CHECK_THAT(client.read_until("ahead"), Contains("200 OK"));
    }
}

TEST_CASE("a watched request is answered if its client stays", "[http][stream]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(request_text("POST", "/stream/watch", "", "x"));
    std::string answer;
    // Its handler may not wait yet.
    while (answer.empty()) {
        CHECK_THAT(
            exchange(server.port(), request_text("GET", "/stream/release")), Contains("204"));
        client.send(request_text("GET", "/ok"));
        answer = client.read_until("released");
    }
    CHECK_THAT(answer, StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(client.read_until("{\"ok\":true}"), Contains("200 OK"));
}

TEST_CASE("streams go through a Unix socket", "[http][stream]") {
    const cellkeep::test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    const TestServer server({}, "unix:" + path);
    {
        RawClient client(path);
        client.send(request_text("GET", "/stream/lines"));
        CHECK(unchunk(client.read_until("\r\n0\r\n\r\n")) == kLines);
        client.send(request_text("GET", "/stream/hold"));
        (void)client.read_until("begun\n");
    }
    server.wait_for_gone(1);
}

TEST_CASE("streams go through TLS, which goes on behind them", "[http][stream]") {
    const cellkeep::test::TemporaryDirectory directory;
    const CertificateFiles files = make_certificate(directory.path(), "server");
    const TestServer server(
        {}, "127.0.0.1:0", Trust::kToken, TlsContext::load(files.certificate, files.key).value());
    asio::io_context io(1);
    asio::ssl::context context(asio::ssl::context::tls_client);
    context.load_verify_file(files.certificate);
    {
        asio::ssl::stream<asio::ip::tcp::socket> socket(io, context);
        socket.next_layer().connect({asio::ip::address_v4::loopback(), server.port()});
        socket.handshake(asio::ssl::stream_base::client);
        std::string pending;
        const auto read_until = [&](const std::string& text) {
            const std::size_t end = asio::read_until(socket, asio::dynamic_buffer(pending), text);
            const std::string out = pending.substr(0, end);
            pending.erase(0, end);
            return out;
        };
        for (int i = 0; i < 3; ++i) {
            asio::write(socket, asio::buffer(request_text("GET", "/stream/lines")));
            CHECK(unchunk(read_until("\r\n0\r\n\r\n")) == kLines);
            asio::write(socket, asio::buffer(request_text("GET", "/ok")));
            CHECK_THAT(read_until("{\"ok\":true}"), Contains("200 OK"));
        }
        asio::write(socket, asio::buffer(request_text("GET", "/stream/hold")));
        (void)read_until("begun\n");
    }
    server.wait_for_gone(1);
}

TEST_CASE("a server that stops ends its streams", "[http][stream]") {
    TestServer server;
    RawClient client(server.port());
    client.send(request_text("GET", "/stream/hold"));
    (void)client.read_until("begun\n");
    server.stop();
    CHECK_THAT(client.read_all(), !Contains("0\r\n\r\n"));
}

}  // namespace
}  // namespace cellkeep::http::test
