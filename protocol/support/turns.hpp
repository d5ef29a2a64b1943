// SPDX-License-Identifier: Apache-2.0
//
// Coroutines that have to go through one thing one after another, or few at a time, in the order in
// which they came. io_context thread only.
#pragma once

#include "protocol/support/completion.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

namespace cellkeep {

class Turns {
 public:
    /// While it lives, it is one of those that there are at once. Move-only. When it is destroyed,
    /// the coroutine that has waited longest gets the next one.
    class Turn {
     public:
        explicit Turn(std::shared_ptr<Turns> turns) : turns_(std::move(turns)) {}
        Turn(Turn&&) noexcept = default;
        Turn& operator=(Turn&&) = delete;
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn() {
            if (turns_) {
                turns_->pass_on();
            }
        }

     private:
        std::shared_ptr<Turns> turns_;
    };

    /// at_once: at least 1.
    explicit Turns(boost::asio::io_context& io, std::size_t at_once = 1)
        : io_(io), free_(at_once) {}

    /// Any number of coroutines may wait here. So callers bound their number themselves; branches
    /// are bounded by the server's sessions. Destroy a waiting coroutine only with the io_context:
    /// otherwise its turn would never end.
    static boost::asio::awaitable<Turn> take(std::shared_ptr<Turns> self) {
        if (self->free_ > 0) {
            --self->free_;
        } else {
            const auto mine = std::make_shared<Completion<bool>>(self->io_);
            self->waiting_.push_back(mine);
            (void)co_await Completion<bool>::wait(mine);
        }
        co_return Turn(std::move(self));
    }

 private:
    void pass_on() {
        if (waiting_.empty()) {
            ++free_;
            return;
        }
        const auto next = waiting_.front();
        waiting_.pop_front();
        next->set(true);
    }

    boost::asio::io_context& io_;
    std::size_t free_;
    std::deque<std::shared_ptr<Completion<bool>>> waiting_;
};

}  // namespace cellkeep
