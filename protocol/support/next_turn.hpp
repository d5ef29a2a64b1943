// SPDX-License-Identifier: Apache-2.0
//
// For work in slices: other work has its turn between them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace cellkeep {

/// Returns in the next turn of the event loop.
inline boost::asio::awaitable<void> next_turn() {
    const auto executor = co_await boost::asio::this_coro::executor;
    co_await boost::asio::post(executor, boost::asio::use_awaitable);
}

}  // namespace cellkeep
