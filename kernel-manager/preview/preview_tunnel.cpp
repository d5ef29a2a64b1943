// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/preview_tunnel.hpp"

#include "protocol/support/await.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <string>
#include <utility>

namespace cellkeep::preview {

namespace asio = boost::asio;

namespace {

/// Both ends of one WebSocket.
struct Relay {
    std::shared_ptr<http::ByteStream> visitor;
    std::shared_ptr<InnerConnection> inner;
    std::array<char, kPreviewBufferBytes> buffer{};  // of what the visitor says
    bool over = false;                               // the server inside has closed

    void stop() const {
        inner->close();
        visitor->close();
    }
};
using RelayPtr = std::shared_ptr<Relay>;

asio::awaitable<void> pass_inwards(RelayPtr both) {
    while (!both->over) {
        const auto [ended, bytes] =
            co_await both->visitor->async_read_some(asio::buffer(both->buffer), kAwait);
        if (ended == asio::error::eof) {
            // What it has said last still arrives, and the server inside may say goodbye.
            both->inner->stream().end_sending();
            both->inner->watchdog().arm(kTunnelGoodbye);
            co_return;
        }
        if (both->over) {
            break;
        }
        if (ended) {
            both->stop();
            co_return;
        }
        both->inner->session().touch();
        both->inner->session().wake();
        both->inner->watchdog().arm(both->inner->patience().idle);
        const boost::system::error_code failed =
            co_await both->inner->stream().write({both->buffer.data(), bytes});
        if (failed && !both->over) {
            both->stop();
            co_return;
        }
    }
}

asio::awaitable<bool> give_visitor(const RelayPtr& both, std::string_view bytes) {
    both->inner->watchdog().arm(both->inner->patience().idle);
    const auto [failed, written] = co_await asio::async_write(
        *both->visitor, asio::buffer(bytes.data(), bytes.size()), kAwait);
    co_return !failed;
}

asio::awaitable<void> pass_outwards(RelayPtr both) {
    const std::string rest = both->inner->take_rest();
    bool taken = true;
    if (!rest.empty()) {
        taken = co_await give_visitor(both, rest);
    }
    while (taken) {
        const auto got = co_await both->inner->stream().read_some(both->inner->buffer());
        if (got.error == asio::error::eof) {
            // A WebSocket ends in both directions. Its visitor's connection is closed in order by
            // its owner.
            both->over = true;
            both->inner->close();
            both->visitor->cancel();
            co_return;
        }
        if (got.error) {
            break;
        }
        const auto* bytes = static_cast<const char*>(both->inner->buffer().data());
        taken = co_await give_visitor(both, {bytes, got.bytes});
    }
    both->stop();
}

}  // namespace

asio::awaitable<void> relay(
    std::shared_ptr<http::ByteStream> visitor, std::shared_ptr<InnerConnection> inner) {
    using asio::experimental::awaitable_operators::operator&&;
    const auto both = std::make_shared<Relay>();
    both->visitor = std::move(visitor);
    both->inner = std::move(inner);
    both->inner->let_rest();
    both->inner->watchdog().on_expiry([weak = std::weak_ptr(both)] {
        if (const auto silent = weak.lock()) {
            silent->stop();
        }
    });
    both->inner->watchdog().arm(both->inner->patience().idle);
    co_await (pass_inwards(both) && pass_outwards(both));
    both->inner->watchdog().stop();
    both->inner->close();
}

}  // namespace cellkeep::preview
