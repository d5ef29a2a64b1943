// SPDX-License-Identifier: Apache-2.0
//
// A connection in a pause of its listener.
#include "kernel-manager/http/connection/connection.hpp"
#include "kernel-manager/http/connection/peer_watch.hpp"
#include "protocol/support/await.hpp"

#include <algorithm>
#include <iterator>

namespace cellkeep::http {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

bool Connection::must_rest() const {
    return registry_->paused() && !finishing_ && !wire_->stream->has_tls();
}

asio::awaitable<void> Connection::rest() {
    wire_->deadline.clear();
    resting_ = true;
    rest_.expires_at(Clock::time_point::max());
    (void)co_await rest_.async_wait(kAwait);  // Ignored: that is how it ends.
    resting_ = false;
}

void Connection::go_on() {
    rest_.cancel();
}

UniqueFd Connection::pass_on() {
    finishing_ = true;
    rest_.cancel();
    return wire_->stream->release();
}

std::vector<Connection*> ConnectionRegistry::resting() const {
    std::vector<Connection*> all;
    std::copy_if(
        open_.begin(), open_.end(), std::back_inserter(all), [](const Connection* connection) {
            return connection->is_resting();
        });
    std::stable_partition(all.begin(), all.end(), [](const Connection* connection) {
        return connection->has_input();
    });
    return all;
}

void Connection::come_to_rest(Clock::time_point now) {
    if (finishing_ && websocket_ && !outlasts_pause() &&
        now >= finishing_since_ + kPausedClosePatience) {
        abort();
        return;
    }
    if (must_rest() && !websocket_ && !tunnel_) {
        if (waiting_) {
            wire_->stream->cancel();
        } else if (!resting_ && watch_) {
            watch_->announce_closing();
        }
        return;
    }
    const bool is_new = !served_ && now < opened_ + kFirstRequestPatience;
    if (finishing_ || outlasts_pause() || is_new || (waiting_ && wire_->stream->has_input())) {
        return;
    }
    finish();
}

}  // namespace cellkeep::http
