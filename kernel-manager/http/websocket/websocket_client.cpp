// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/websocket_client.hpp"

#include "kernel-manager/http/client_stream.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/await.hpp"

#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

constexpr std::chrono::seconds kOpenPatience{30};

class BeastClient final : public WebSocketClient {
 public:
    explicit BeastClient(std::shared_ptr<ClientStream> below)
        : below_(std::move(below)), stream_(below_->bytes()) {
        stream_.read_message_max(limits::kFrameBytesMax);
    }

    asio::awaitable<Status> shake_hands(const ServerAddress& server, std::string target) {
        stream_.set_option(beast::websocket::stream_base::decorator(
            [token = server.token](beast::websocket::request_type& request) {
                request.set(beast::http::field::authorization, "Bearer " + token);
            }));
        const std::string host =
            server.port.empty() ? std::string("localhost") : "localhost:" + server.port;
        auto [failed] = co_await stream_.async_handshake(host, server.base + target, kAwait);
        if (failed) {
            co_return below_->error(failed);
        }
        // From here on it may be silent for as long as its process is.
        below_->expires_never();
        co_return ok();
    }
    asio::awaitable<Result<WebSocketMessage>> receive() override {
        beast::flat_buffer buffer;
        auto [failed, bytes] = co_await stream_.async_read(buffer, kAwait);
        if (failed) {
            co_return below_->error(failed);
        }
        const auto kind = stream_.got_text() ? WebSocketKind::kText : WebSocketKind::kBinary;
        WebSocketMessage message;
        message.kind = kind;
        message.pieces.push_back(beast::buffers_to_string(buffer.data()));
        co_return message;
    }
    asio::awaitable<Status> send(WebSocketKind kind, std::string data) override {
        stream_.text(kind == WebSocketKind::kText);
        auto [failed, bytes] = co_await stream_.async_write(asio::buffer(data), kAwait);
        co_return failed ? Status(below_->error(failed)) : Status(ok());
    }
    void close() override { below_->bytes().close(); }

 private:
    const std::shared_ptr<ClientStream> below_;
    beast::websocket::stream<ByteStream&, false> stream_;
};

}  // namespace

asio::awaitable<Result<std::unique_ptr<WebSocketClient>>> open_websocket(
    const ServerAddress& server, std::string target) {
    auto below = co_await ClientStream::open(server, kOpenPatience);
    if (below.has_error()) {
        co_return below.error();
    }
    auto client = std::make_unique<BeastClient>(std::move(below).value());
    const Status open = co_await client->shake_hands(server, std::move(target));
    if (open.has_error()) {
        co_return open.error();
    }
    co_return std::unique_ptr<WebSocketClient>(std::move(client));
}

}  // namespace cellkeep::http
