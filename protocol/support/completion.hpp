// SPDX-License-Identifier: Apache-2.0
//
// One value that a coroutine waits for and a callback delivers. Any number may wait; each gets a
// copy. io_context thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace cellkeep {

template <typename T>
class Completion {
 public:
    explicit Completion(boost::asio::io_context& io)
        : never_(io, boost::asio::steady_timer::time_point::max()) {}

    /// The first value counts; later ones are ignored.
    void set(T value) {
        if (!value_.has_value()) {
            value_.emplace(std::move(value));
            never_.cancel();
        }
    }
    bool done() const { return value_.has_value(); }
    /// Only if done().
    const T& value() const { return *value_; }

    /// The waiter must share ownership of the Completion, or it dies under the waiter.
    static boost::asio::awaitable<T> wait(std::shared_ptr<Completion> self) {
        while (!self->value_.has_value()) {
            boost::system::error_code cancelled;  // that is how set() wakes us
            co_await self->never_.async_wait(
                boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
        }
        co_return *self->value_;
    }

 private:
    boost::asio::steady_timer never_;
    std::optional<T> value_;
};

}  // namespace cellkeep
