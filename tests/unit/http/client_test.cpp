// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/client.hpp"

#include "tests/support/temporary_directory.hpp"
#include "tests/unit/http/certificate.hpp"
#include "tests/unit/http/test_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::http::test {
namespace {

/// With a sink the body comes as a stream.
Result<ClientResponse> fetch_now(
    const ServerAddress& server, ClientRequest request, BodySink sink = {}) {
    boost::asio::io_context io;
    std::optional<Result<ClientResponse>> answer;
    const auto ask = [&]() -> boost::asio::awaitable<void> {
        if (sink) {
            answer.emplace(co_await fetch_stream(server, std::move(request), std::move(sink)));
        } else {
            answer.emplace(co_await fetch(server, std::move(request)));
        }
    };
    boost::asio::co_spawn(io, ask, [](std::exception_ptr failure) {
        if (failure) {
            std::rethrow_exception(failure);
        }
    });
    (void)io.run();
    return std::move(*answer);
}

TEST_CASE("the client sends its token and gives back status and body", "[http][client]") {
    const TestServer server;
    ClientRequest request;
    request.method = "POST";
    request.target = "/echo";
    request.body = "{}";
    const auto answer = fetch_now(parse_server_url(server.url(), "t").value(), request);
    REQUIRE(answer.has_value());
    CHECK(answer.value().status == 200);
    CHECK(answer.value().body == "{}");
    CHECK(fetch_now(parse_server_url(server.url(), "u").value(), request).value().status == 401);
}

TEST_CASE("a body comes piece by piece, with the answer's headers", "[http][client]") {
    const TestServer server;
    const ServerAddress address = parse_server_url(server.url(), "t").value();
    std::string body;
    const BodySink keep = [&body](std::string_view piece) {
        body += piece;
        return true;
    };
    ClientRequest request;
    request.target = "/stream/lines";
    const auto lines = fetch_now(address, request, keep);
    REQUIRE(lines.has_value());
    CHECK(lines.value().body.empty());
    CHECK(std::count(body.begin(), body.end(), '\n') == 10);
    CHECK(lines.value().headers.find("Transfer-Encoding") != nullptr);

    body.clear();
    request.method = "POST";
    request.target = "/echo";
    request.body = "{}";
    request.headers.add("Accept", "text/html");
    CHECK(fetch_now(address, request, keep).value().status == 200);
    CHECK(body == "{}");
}

TEST_CASE("a stream that breaks, or is no longer wanted, is an error", "[http][client]") {
    const TestServer server;
    const ServerAddress address = parse_server_url(server.url(), "t").value();
    ClientRequest request;
    for (const char* target : {"/stream/cut", "/stream/throw"}) {
        request.target = target;
        const auto cut = fetch_now(address, request, [](std::string_view) { return true; });
        REQUIRE(cut.has_error());
        CHECK(cut.error().code() == ErrorCode::kUnavailable);
    }
    request.target = "/stream/flood";
    int pieces = 0;
    const auto enough =
        fetch_now(address, request, [&pieces](std::string_view) { return ++pieces < 3; });
    REQUIRE(enough.has_error());
    CHECK(enough.error().code() == ErrorCode::kCancelled);
    CHECK(pieces == 3);
}

TEST_CASE("the client speaks TLS to the server whose certificate it knows", "[http][client][tls]") {
    const cellkeep::test::TemporaryDirectory directory;
    const CertificateFiles files = make_certificate(directory.path(), "server");
    const auto tls = TlsContext::load(files.certificate, files.key).value();
    TestServer server({}, "127.0.0.1:0", Trust::kToken, tls);
    ServerAddress address = parse_server_url(server.url(), "t").value();
    address.certificate_sha256 = tls->certificate_sha256();
    CHECK(address.certificate_sha256.size() == 64);
    ClientRequest request;
    request.target = "/ok";
    const auto answer = fetch_now(address, request);
    REQUIRE(answer.has_value());
    CHECK(answer.value().body == "{\"ok\":true}");

    address.certificate_sha256 = GENERATE(as<std::string>(), "", std::string(64, '0'));
    const auto refused = fetch_now(address, request);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kUnavailable);
    address.certificate_sha256 = tls->certificate_sha256();
    address.tls = false;
    CHECK(fetch_now(address, request).has_error());
    // The client has sent the token only to the right server.
    server.stop();
    CHECK(std::count_if(server.records().begin(), server.records().end(), [](const auto& record) {
              return record.status == 200;
          }) == 1);
}

TEST_CASE("the client speaks over a Unix socket", "[http][client][unix_socket]") {
    const cellkeep::test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    ServerAddress address = parse_server_url("unix:" + path, "t").value();
    CHECK(address.socket_path == path);
    ClientRequest request;
    request.target = "/ok";
    CHECK(fetch_now(address, request).error().code() == ErrorCode::kUnavailable);
    const TestServer server({}, "unix:" + path);
    CHECK(fetch_now(address, request).value().status == 200);
    address.token = "u";
    CHECK(fetch_now(address, request).value().status == 401);
}

TEST_CASE("a server that is not there is an error, not a hang", "[http][client]") {
    std::string url;
    {
        const TestServer server;
        url = server.url();
    }
    const auto answer = fetch_now(parse_server_url(url, "t").value(), {});
    REQUIRE(answer.has_error());
    CHECK(answer.error().code() == ErrorCode::kUnavailable);
}

TEST_CASE("a server's address is a numeric host and a port, or a socket's path", "[http][client]") {
    CHECK(parse_server_url("http://[::1]:80", "t").value().host == "::1");
    CHECK(parse_server_url("http://127.0.0.1:80/", "t").value().base.empty());
    const auto below = parse_server_url("http://127.0.0.1:80/user/an:na/", "t");
    CHECK(below.value().base == "/user/an:na");
    CHECK(below.value().port == "80");
    CHECK(parse_server_url("https://127.0.0.1:443", "t").value().tls);
    CHECK(parse_server_url("unix:/" + std::string(106, 'p'), "t").has_value());
    const std::string url = GENERATE(
        as<std::string>(),
        "",
        "http://",
        "http://127.0.0.1",
        "https://127.0.0.1",
        "https://example.org:443",
        "unix:",
        "unix:s",
        "unix:/" + std::string(107, 'p'),
        "http://127.0.0.1:0",
        "http://127.0.0.1:x",
        "http://127.0.0.1/base",
        "http://127.0.0.1:x/base",
        "http:///base:80",
        "http://example.org:80",
        "127.0.0.1:80");
    CAPTURE(url);
    CHECK(parse_server_url(url, "t").has_error());
}

}  // namespace
}  // namespace cellkeep::http::test
