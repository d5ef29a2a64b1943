// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/client.hpp"

#include "kernel-manager/http/client_stream.hpp"
#include "protocol/support/await.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

/// An answer of our server: outputs of one execution, pictures included.
constexpr std::uint64_t kAnswerBytesMax = 1ULL << 30U;
/// What is read of a streamed body at once.
constexpr std::size_t kBodyPieceBytes = 64ULL << 10U;

using WireRequest = beast::http::request<beast::http::string_body>;

WireRequest make_wire(const ServerAddress& server, ClientRequest request) {
    WireRequest wire;
    wire.version(11);
    wire.method_string(request.method);
    wire.target(server.base + request.target);
    wire.set(
        beast::http::field::host,
        server.port.empty() ? std::string("localhost") : "localhost:" + server.port);
    wire.set(beast::http::field::authorization, "Bearer " + server.token);
    wire.set(beast::http::field::connection, "close");
    for (const auto& [name, value] : request.headers.all()) {
        wire.set(name, value);
    }
    if (!request.body.empty()) {
        wire.set(beast::http::field::content_type, "application/json");
    }
    wire.body() = std::move(request.body);
    wire.prepare_payload();
    return wire;
}

template <typename Fields>
Headers headers_of(const Fields& fields) {
    Headers headers;
    for (const auto& field : fields) {
        headers.add(std::string(field.name_string()), std::string(field.value()));
    }
    return headers;
}

asio::awaitable<Result<ClientResponse>> read_whole(ClientStream& stream) {
    beast::flat_buffer buffer;
    beast::http::response_parser<beast::http::string_body> parser;
    parser.body_limit(kAnswerBytesMax);
    auto [failed, read] = co_await beast::http::async_read(stream.bytes(), buffer, parser, kAwait);
    if (failed) {
        co_return stream.error(failed);
    }
    ClientResponse response;
    response.status = static_cast<int>(parser.get().result_int());
    response.headers = headers_of(parser.get());
    response.body = std::move(parser.get().body());
    co_return response;
}

/// What is to be read, and how long each piece may take.
struct StreamedRead {
    BodySink sink;
    std::chrono::milliseconds timeout{0};
};

asio::awaitable<Result<ClientResponse>> read_pieces(
    ClientStream& stream, const StreamedRead& reading) {
    beast::flat_buffer buffer;
    beast::http::response_parser<beast::http::buffer_body> parser;
    parser.body_limit(kAnswerBytesMax);
    auto [head_failed, head] =
        co_await beast::http::async_read_header(stream.bytes(), buffer, parser, kAwait);
    if (head_failed) {
        co_return stream.error(head_failed);
    }
    ClientResponse response;
    response.status = static_cast<int>(parser.get().result_int());
    response.headers = headers_of(parser.get());
    std::array<char, kBodyPieceBytes> piece{};
    while (!parser.is_done()) {
        parser.get().body().data = piece.data();
        parser.get().body().size = piece.size();
        stream.expires_after(reading.timeout);
        auto [failed, got] =
            co_await beast::http::async_read_some(stream.bytes(), buffer, parser, kAwait);
        if (failed && failed != beast::http::error::need_buffer) {
            co_return stream.error(failed);
        }
        const std::size_t bytes = piece.size() - parser.get().body().size;
        if (bytes > 0 && !reading.sink(std::string_view(piece.data(), bytes))) {
            co_return Error(ErrorCode::kCancelled, "The answer is no longer wanted.");
        }
    }
    co_return response;
}

/// Without a sink the whole body is in the answer.
asio::awaitable<Result<ClientResponse>> send_request(
    const ServerAddress& server, ClientRequest request, StreamedRead reading) {
    const auto opened = co_await ClientStream::open(server, request.timeout);
    if (opened.has_error()) {
        co_return opened.error();
    }
    ClientStream& stream = *opened.value();
    const WireRequest wire = make_wire(server, std::move(request));
    auto [failed, written] = co_await beast::http::async_write(stream.bytes(), wire, kAwait);
    if (failed) {
        co_return stream.error(failed);
    }
    if (!reading.sink) {
        co_return co_await read_whole(stream);
    }
    co_return co_await read_pieces(stream, reading);
}

}  // namespace

Result<ServerAddress> parse_server_url(const std::string& url, std::string token) {
    static constexpr std::string_view kPlain = "http://";
    static constexpr std::string_view kTls = "https://";
    static constexpr std::string_view kUnix = "unix:/";
    ServerAddress server;
    server.token = std::move(token);
    if (url.substr(0, kUnix.size()) == kUnix) {
        server.socket_path = url.substr(kUnix.size() - 1);
        BOOST_OUTCOME_TRY(check_address(server));
        return server;
    }
    const Error refused(
        ErrorCode::kInvalidArgument,
        "\"" + url + "\" is none of http://ADDRESS:PORT, https://ADDRESS:PORT and unix:/PATH");
    server.tls = url.substr(0, kTls.size()) == kTls;
    const std::string_view scheme = server.tls ? kTls : kPlain;
    if (url.substr(0, scheme.size()) != scheme) {
        return refused;
    }
    const std::size_t slash = std::min(url.find('/', scheme.size()), url.size());
    const std::string authority = url.substr(scheme.size(), slash - scheme.size());
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
    if (check_address(server).has_error()) {
        return refused;
    }
    return server;
}

asio::awaitable<Result<ClientResponse>> fetch(const ServerAddress& server, ClientRequest request) {
    StreamedRead whole;  // a variable: g++ 12 destroys such a temporary of a co_await twice
    co_return co_await send_request(server, std::move(request), std::move(whole));
}

asio::awaitable<Result<ClientResponse>> fetch_stream(
    const ServerAddress& server, ClientRequest request, BodySink sink) {
    StreamedRead pieces{std::move(sink), request.timeout};
    co_return co_await send_request(server, std::move(request), std::move(pieces));
}

}  // namespace cellkeep::http
