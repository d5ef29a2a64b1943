// SPDX-License-Identifier: Apache-2.0
//
// Drives an io_context until one coroutine has ended, for commands that have nothing else to do.
// Work that others posted to the io_context is done meanwhile, not waited for.
#pragma once

#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace cellkeep::cli {

/// Rethrows what the coroutine threw; kCancelled if the io_context was stopped first.
template <typename T>
Result<T> run_to_end(boost::asio::io_context& io, boost::asio::awaitable<Result<T>> task) {
    std::optional<Result<T>> outcome;
    std::exception_ptr failure;
    // Result has no default value, which co_spawn would need to hand it over.
    const auto keep = [&outcome, &task]() -> boost::asio::awaitable<void> {
        outcome.emplace(co_await std::move(task));
    };
    boost::asio::co_spawn(
        io, keep, [&failure](std::exception_ptr thrown) { failure = std::move(thrown); });
    while (!outcome && !failure && io.run_one() > 0) {
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
    if (!outcome) {
        return Error(ErrorCode::kCancelled, "stopped");
    }
    return std::move(*outcome);
}

}  // namespace cellkeep::cli
