// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/client.hpp"

#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

/// An answer of our server: outputs of one execution, pictures included.
constexpr std::uint64_t kAnswerBytesMax = 1ULL << 30U;

Error client_error(const boost::system::error_code& error, const ServerAddress& server) {
    const std::string where = "http://" + server.host + ":" + server.port;
    if (error == beast::error::timeout) {
        return {ErrorCode::kTimeout, where + ": no answer in time"};
    }
    return {ErrorCode::kUnavailable, where + ": " + error.message()};
}

}  // namespace

Result<ServerAddress> parse_server_url(const std::string& url, std::string token) {
    static constexpr std::string_view kScheme = "http://";
    const Error refused(ErrorCode::kInvalidArgument, "\"" + url + "\" is not http://ADDRESS:PORT");
    if (url.substr(0, kScheme.size()) != kScheme) {
        return refused;
    }
    ServerAddress server;
    const std::size_t slash = std::min(url.find('/', kScheme.size()), url.size());
    const std::string authority = url.substr(kScheme.size(), slash - kScheme.size());
    server.base = url.substr(slash);
    while (!server.base.empty() && server.base.back() == '/') {
        server.base.pop_back();
    }
    const std::size_t colon = authority.rfind(':');
    if (colon == std::string::npos) {
        return refused;
    }
    server.host = authority.substr(0, colon);
    if (server.host.size() > 2 && server.host.front() == '[') {
        server.host = server.host.substr(1, server.host.size() - 2);
    }
    server.port = authority.substr(colon + 1);
    server.token = std::move(token);
    std::uint16_t port = 0;
    const char* end = server.port.data() + server.port.size();
    const auto [stop, failed] = std::from_chars(server.port.data(), end, port);
    boost::system::error_code error;
    (void)asio::ip::make_address(server.host, error);
    if (error || failed != std::errc() || stop != end || port == 0) {
        return refused;
    }
    return server;
}

asio::awaitable<Result<ClientResponse>> fetch(const ServerAddress& server, ClientRequest request) {
    boost::system::error_code parse_error;
    const auto address = asio::ip::make_address(server.host, parse_error);
    std::uint16_t port = 0;
    (void)std::from_chars(server.port.data(), server.port.data() + server.port.size(), port);
    const asio::ip::tcp::endpoint endpoint(address, port);

    beast::tcp_stream stream(co_await asio::this_coro::executor);
    stream.expires_after(request.timeout);
    auto [refused] = co_await stream.async_connect(endpoint, kAwait);
    if (refused) {
        co_return client_error(refused, server);
    }

    beast::http::request<beast::http::string_body> wire;
    wire.version(11);
    wire.method_string(request.method);
    wire.target(server.base + request.target);
    wire.set(beast::http::field::host, "localhost:" + server.port);
    wire.set(beast::http::field::authorization, "Bearer " + server.token);
    wire.set(beast::http::field::connection, "close");
    if (!request.body.empty()) {
        wire.set(beast::http::field::content_type, "application/json");
    }
    wire.body() = std::move(request.body);
    wire.prepare_payload();
    auto [write_failed, written] = co_await beast::http::async_write(stream, wire, kAwait);
    if (write_failed) {
        co_return client_error(write_failed, server);
    }

    beast::flat_buffer buffer;
    beast::http::response_parser<beast::http::string_body> parser;
    parser.body_limit(kAnswerBytesMax);
    auto [read_failed, read] = co_await beast::http::async_read(stream, buffer, parser, kAwait);
    if (read_failed) {
        co_return client_error(read_failed, server);
    }
    ClientResponse response;
    response.status = static_cast<int>(parser.get().result_int());
    response.body = std::move(parser.get().body());
    co_return response;
}

}  // namespace cellkeep::http
