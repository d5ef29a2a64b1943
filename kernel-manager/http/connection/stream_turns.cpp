// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/stream_turns.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace cellkeep::http {

namespace asio = boost::asio;

/// A stream's place in the line, which it leaves however its wait ends.
class StreamTurns::InLine {
 public:
    InLine(StreamTurns& turns, Place& place) : turns_(turns), place_(place) {
        turns_.waiting_.push_back(&place_);
    }
    InLine(const InLine&) = delete;
    InLine& operator=(const InLine&) = delete;
    ~InLine() {
        if (!place_.granted) {
            turns_.waiting_.remove(&place_);
        }
    }

 private:
    StreamTurns& turns_;
    Place& place_;
};

StreamTurns::StreamTurns(asio::execution_context& context)
    : service(context), io_(static_cast<asio::io_context&>(context)) {}

asio::awaitable<void> StreamTurns::next() {
    ask_for_turn();
    if (left_ > 0 && waiting_.empty()) {
        --left_;
        co_return;
    }
    Place place{asio::steady_timer(io_, asio::steady_timer::time_point::max())};
    const InLine in_line(*this, place);
    while (!place.granted) {
        boost::system::error_code ignored;  // Ignored: being cancelled is the event.
        co_await place.timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
}

void StreamTurns::ask_for_turn() {
    if (!asked_) {
        asked_ = true;
        asio::post(io_, [this] { begin_turn(); });
    }
}

void StreamTurns::begin_turn() {
    asked_ = false;
    left_ = limits::kHttpStreamPiecesPerTurn;
    while (left_ > 0 && !waiting_.empty()) {
        Place& first = *waiting_.front();
        waiting_.pop_front();
        first.granted = true;
        first.timer.cancel();
        --left_;
    }
    if (left_ < limits::kHttpStreamPiecesPerTurn) {
        ask_for_turn();
    }
}

}  // namespace cellkeep::http
