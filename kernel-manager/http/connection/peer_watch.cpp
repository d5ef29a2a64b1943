// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/peer_watch.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;

PeerWatch::PeerWatch(std::shared_ptr<Wire> wire, std::shared_ptr<RequestReader> reader)
    : wire_(std::move(wire)),
      reader_(std::move(reader)),
      ended_(wire_->stream->get_executor(), asio::steady_timer::time_point::max()) {}

void PeerWatch::watch(std::function<void()> gone) {
    on_gone_ = std::move(gone);
    if (gone_) {
        if (on_gone_) {
            on_gone_();
        }
        return;
    }
    if (running_ || !on_gone_ || !reader_->done()) {
        return;
    }
    running_ = true;
    wire_->stream->notice_lost_peer(wire_->limits.stream_stall_max);
    asio::co_spawn(
        wire_->stream->get_executor(),
        [self = shared_from_this()] { return self->run(); },
        asio::detached);
}

asio::awaitable<void> PeerWatch::run() {
    const std::size_t most = wire_->limits.ahead_bytes_max;
    boost::system::error_code error;
    while (!stopping_ && !error && reader_->bytes_ahead() < most) {
        error = co_await reader_->receive_ahead(most - reader_->bytes_ahead());
    }
    if (error && !stopping_ && !std::exchange(gone_, true) && on_gone_) {
        on_gone_();
    }
    running_ = false;
    ended_.cancel();
}

void PeerWatch::await(std::string what, std::function<void()> changed) {
    awaited_ = std::move(what);
    on_changed_ = std::move(changed);
}

void PeerWatch::hold(bool held) {
    if (std::exchange(held_, held) != held && on_changed_) {
        on_changed_();
    }
}

void PeerWatch::pass_on() {
    passed_ = true;
    stopping_ = true;  // a read that ends now says nothing of the client
    on_gone_ = nullptr;
    awaited_.clear();
    if (const auto changed = std::exchange(on_changed_, nullptr)) {
        changed();
    }
}

void PeerWatch::announce_closing() {
    if (!std::exchange(closing_, true) && on_closing_) {
        on_closing_();
    }
}

asio::awaitable<void> PeerWatch::end() {
    on_gone_ = nullptr;
    on_closing_ = nullptr;
    await({}, nullptr);
    stopping_ = true;
    while (running_) {
        wire_->stream->cancel();
        (void)co_await ended_.async_wait(kAwait);  // Ignored: being cancelled is the news.
    }
    stopping_ = false;
}

}  // namespace cellkeep::http
