// SPDX-License-Identifier: Apache-2.0
//
// A connection in a pause of its listener.
#include "kernel-manager/http/connection/connection.hpp"
#include "kernel-manager/http/connection/peer_watch.hpp"
#include "kernel-manager/http/connection/request_reader.hpp"
#include "protocol/support/await.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace cellkeep::http {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

bool Connection::must_rest() const {
    return registry_->rests() && !finishing_ && !wire_->stream->has_tls();
}

asio::awaitable<void> Connection::rest() {
    wire_->deadline.clear();
    resting_ = true;
    rest_.expires_at(Clock::time_point::max());
    (void)co_await rest_.async_wait(kAwait);  // Ignored: that is how it ends.
    resting_ = false;
}

asio::awaitable<bool> Connection::await_first_byte() {
    if (reader_->bytes_ahead() > 0) {
        co_return true;
    }
    for (;;) {
        while (must_rest()) {
            co_await rest();
        }
        if (finishing_) {
            co_return false;
        }
        waiting_ = true;
        wire_->deadline.set(wire_->limits.idle_timeout);
        const boost::system::error_code error = co_await reader_->receive_ahead(kReadBytes);
        waiting_ = false;
        if (!error) {
            // What comes in the same turn as a pause is answered; a stopping server has closed.
            co_return !registry_->stopping();
        }
        const bool is_cancelled =
            error == asio::error::operation_aborted && !wire_->deadline.expired();
        if (is_cancelled && finishing_) {
            abort();  // without a goodbye of TLS, for which a client at rest does not look
        }
        if (!is_cancelled || finishing_) {
            co_return false;
        }
    }
}

/// As finish(), but what has been read in this turn is answered.
void Connection::finish_after_input() {
    if (!waiting_) {
        finish();
        return;
    }
    finishing_ = true;
    finishing_since_ = Clock::now();
    wire_->stream->cancel();
}

void Connection::go_on() {
    rest_.cancel();
    if (watch_) {
        watch_->hold(false);
    }
}

bool Connection::is_awaiting() const {
    return watch_ && !watch_->awaited().empty();
}

const std::string& Connection::awaited() const {
    return watch_->awaited();
}

bool Connection::can_pass_awaiting() const {
    return is_awaiting() && !watch_->is_writing() && !finishing_ && !wire_->stream->has_tls() &&
           reader_->done() && reader_->bytes_ahead() == 0 && !reader_->is_chunked() &&
           reader_->head_bytes() <= kAwaitingHeadBytesMax;
}

AwaitingConnection Connection::pass_on() {
    AwaitingConnection passed;
    if (is_awaiting()) {
        passed.head = reader_->write_head();
        passed.awaited = watch_->awaited();
        passed.begun = watch_->has_begun();
        watch_->pass_on();
    }
    finishing_ = true;
    rest_.cancel();
    passed.fd = wire_->stream->release();
    return passed;
}

/// Behind the beginning of an answer nothing but its rest can be sent: else its client would take a
/// head for a part of the body.
bool Connection::goes_on(const Response& response) {
    const auto* stream = std::get_if<StreamBody>(&response.body);
    return !std::exchange(begun_, false) || (stream != nullptr && stream->goes_on);
}

std::vector<std::string> ConnectionRegistry::stuck() const {
    std::size_t passing = 0;
    std::vector<std::string> stuck;
    for (const Connection* connection : open_) {
        const bool passes = connection->can_pass_awaiting() && ++passing <= kAwaitingConnectionsMax;
        if (connection->is_awaiting() && !passes) {
            stuck.push_back(connection->awaited());
        }
    }
    return stuck;
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

bool Connection::is_drawn_out(Clock::time_point now) const {
    const bool is_the_clients =
        step_ == Step::kOpening || step_ == Step::kHead || (step_ == Step::kEnding && !websocket_);
    return is_the_clients && now >= step_since_ + kPausedStepPatience;
}

void Connection::come_to_rest(Clock::time_point now) {
    if (finishing_ && websocket_ && !outlasts_pause() &&
        now >= finishing_since_ + kPausedClosePatience) {
        abort();
        return;
    }
    if (is_drawn_out(now)) {
        expire();
        return;
    }
    if (must_rest() && !websocket_ && !tunnel_) {
        if (waiting_) {
            wire_->stream->cancel();
        } else if (!resting_ && watch_) {
            watch_->announce_closing();
            watch_->hold(registry_->awaits());
        }
        return;
    }
    const bool is_new = !served_ && now < opened_ + kFirstRequestPatience;
    // What has come and was not read would make the close a reset (tcp(7)).
    const bool is_asked = !websocket_ && !tunnel_ && wire_->stream->has_input();
    if (finishing_ || outlasts_pause() || is_new || is_asked) {
        return;
    }
    finish_after_input();
}

}  // namespace cellkeep::http
