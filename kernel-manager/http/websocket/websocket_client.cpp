// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/websocket_client.hpp"

#include "kernel-manager/http/client_stream.hpp"
#include "kernel-manager/http/socket/tls.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

constexpr std::chrono::seconds kOpenPatience{30};

template <typename Next>
class BeastClient final : public WebSocketClient {
 public:
    template <typename... Arguments>
    explicit BeastClient(ServerAddress server, Arguments&&... arguments)
        : server_(std::move(server)), stream_(std::forward<Arguments>(arguments)...) {
        stream_.read_message_max(limits::kFrameBytesMax);
    }

    beast::websocket::stream<Next>& stream() { return stream_; }

    asio::awaitable<Status> shake_hands(std::string target) {
        stream_.set_option(beast::websocket::stream_base::decorator(
            [token = server_.token](beast::websocket::request_type& request) {
                request.set(beast::http::field::authorization, "Bearer " + token);
            }));
        const std::string host =
            server_.port.empty() ? std::string("localhost") : "localhost:" + server_.port;
        auto [failed] = co_await stream_.async_handshake(host, server_.base + target, kAwait);
        if (failed) {
            co_return client_error(failed, server_);
        }
        // From here on it may be silent for as long as its process is.
        beast::get_lowest_layer(stream_).expires_never();
        co_return ok();
    }
    asio::awaitable<Result<WebSocketMessage>> receive() override {
        beast::flat_buffer buffer;
        auto [failed, bytes] = co_await stream_.async_read(buffer, kAwait);
        if (failed) {
            co_return client_error(failed, server_);
        }
        const auto kind = stream_.got_text() ? WebSocketKind::kText : WebSocketKind::kBinary;
        co_return WebSocketMessage{kind, beast::buffers_to_string(buffer.data())};
    }
    asio::awaitable<Status> send(WebSocketKind kind, std::string data) override {
        stream_.text(kind == WebSocketKind::kText);
        auto [failed, bytes] = co_await stream_.async_write(asio::buffer(data), kAwait);
        co_return failed ? Status(client_error(failed, server_)) : Status(ok());
    }
    void close() override { beast::get_lowest_layer(stream_).close(); }

 private:
    const ServerAddress server_;
    beast::websocket::stream<Next> stream_;
};

/// The context must outlive its streams.
class TlsClient final : public WebSocketClient {
 public:
    TlsClient(ServerAddress server, ClientStream stream)
        : context_(asio::ssl::context::tls_client),
          inner_(std::move(server), std::move(stream), context_) {}

    BeastClient<asio::ssl::stream<ClientStream>>& inner() { return inner_; }
    asio::awaitable<Result<WebSocketMessage>> receive() override { return inner_.receive(); }
    asio::awaitable<Status> send(WebSocketKind kind, std::string data) override {
        return inner_.send(kind, std::move(data));
    }
    void close() override { inner_.close(); }

 private:
    asio::ssl::context context_;
    BeastClient<asio::ssl::stream<ClientStream>> inner_;
};

using Opened = Result<std::unique_ptr<WebSocketClient>>;

asio::awaitable<Opened> open_with_tls(
    const ServerAddress& server, ClientStream stream, std::string target) {
    auto client = std::make_unique<TlsClient>(server, std::move(stream));
    auto& tls = client->inner().stream().next_layer();
    auto [refused] = co_await tls.async_handshake(asio::ssl::stream_base::client, kAwait);
    if (refused) {
        co_return client_error(refused, server);
    }
    // Before the token leaves (client.cpp).
    if (peer_certificate_sha256(tls.native_handle()) != server.certificate_sha256) {
        co_return Error(
            ErrorCode::kUnavailable,
            text_of(server) +
                " shows another certificate than the one that the server started with");
    }
    const Status open = co_await client->inner().shake_hands(std::move(target));
    if (open.has_error()) {
        co_return open.error();
    }
    co_return std::unique_ptr<WebSocketClient>(std::move(client));
}

}  // namespace

asio::awaitable<Opened> open_websocket(const ServerAddress& server, std::string target) {
    const auto place = endpoint_of(server);
    if (place.has_error()) {
        co_return place.error();
    }
    ClientStream stream(co_await asio::this_coro::executor);
    stream.expires_after(kOpenPatience);
    auto [refused] = co_await stream.async_connect(place.value().endpoint, kAwait);
    if (refused) {
        co_return client_error(refused, server);
    }
    if (server.tls) {
        co_return co_await open_with_tls(server, std::move(stream), std::move(target));
    }
    auto client = std::make_unique<BeastClient<ClientStream>>(server, std::move(stream));
    const Status open = co_await client->shake_hands(std::move(target));
    if (open.has_error()) {
        co_return open.error();
    }
    co_return std::unique_ptr<WebSocketClient>(std::move(client));
}

}  // namespace cellkeep::http
