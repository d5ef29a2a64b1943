// SPDX-License-Identifier: Apache-2.0
//
// Whose streamed answer is written next. Thousands of clients may open streams that all have
// something to send at once; one piece of each in every turn of the event loop would make everybody
// else wait for all of them. So a turn of the loop has room for a few pieces, and the streams take
// it in the order in which they came. io_context thread only.
#pragma once

#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <list>

namespace cellkeep::http {

/// One per io_context: boost::asio::use_service<StreamTurns>(io) finds or makes it.
class StreamTurns final : public boost::asio::execution_context::service {
 public:
    // Asio finds the service by it.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    inline static boost::asio::execution_context::id id;

    explicit StreamTurns(boost::asio::execution_context& context);

    /// Returns when the caller may write one piece (ResponseSender). At once, if this turn of the
    /// loop has room and no stream waits; else in a later turn.
    boost::asio::awaitable<void> next();
    /// Streams that wait.
    std::size_t waiting() const { return waiting_.size(); }

 private:
    struct Place {
        boost::asio::steady_timer timer;  // never expires; cancelled when it is its turn
        bool granted = false;
    };
    class InLine;

    void shutdown() override {}
    /// In the next turn of the loop: what is ready now comes first.
    void ask_for_turn();
    void begin_turn();

    boost::asio::io_context& io_;
    std::list<Place*> waiting_;  // first come, first served
    std::size_t left_ = limits::kHttpStreamPiecesPerTurn;
    bool asked_ = false;
};

}  // namespace cellkeep::http
