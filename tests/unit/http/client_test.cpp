// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/client.hpp"

#include "tests/unit/http/test_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <optional>
#include <string>

namespace cellkeep::http::test {
namespace {

Result<ClientResponse> fetch_now(const ServerAddress& server, ClientRequest request) {
    boost::asio::io_context io;
    std::optional<Result<ClientResponse>> answer;
    const auto ask = [&]() -> boost::asio::awaitable<void> {
        answer.emplace(co_await fetch(server, std::move(request)));
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

TEST_CASE("nobody there is an error, not a hang", "[http][client]") {
    std::string url;
    {
        const TestServer server;
        url = server.url();
    }
    const auto answer = fetch_now(parse_server_url(url, "t").value(), {});
    REQUIRE(answer.has_error());
    CHECK(answer.error().code() == ErrorCode::kUnavailable);
}

TEST_CASE("a server's address must be http with a numeric host and a port", "[http][client]") {
    CHECK(parse_server_url("http://[::1]:80", "t").value().host == "::1");
    CHECK(parse_server_url("http://127.0.0.1:80/", "t").value().base.empty());
    const auto below = parse_server_url("http://127.0.0.1:80/user/an:na/", "t");
    CHECK(below.value().base == "/user/an:na");
    CHECK(below.value().port == "80");
    const std::string url = GENERATE(
        as<std::string>(),
        "",
        "http://",
        "http://127.0.0.1",
        "https://127.0.0.1:80",
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
