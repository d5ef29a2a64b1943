// SPDX-License-Identifier: Apache-2.0
//
// How much of a file the contents API reads, checks or writes before other work has its turn.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstddef>

namespace cellkeep::jupyter {

/// A multiple of three: base64 of such pieces can be joined.
inline constexpr std::size_t kContentsSliceBytes = 192ULL << 10U;

/// Returns in the next turn of the event loop.
inline boost::asio::awaitable<void> next_turn() {
    const auto executor = co_await boost::asio::this_coro::executor;
    co_await boost::asio::post(executor, boost::asio::use_awaitable);
}

}  // namespace cellkeep::jupyter
