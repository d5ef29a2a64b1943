// SPDX-License-Identifier: Apache-2.0
//
// How coroutines here wait for an operation of Asio.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace cellkeep {

/// The completion token of every co_await: the error comes back as a value, so nothing throws.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace cellkeep
