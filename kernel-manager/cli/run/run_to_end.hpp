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
#include <memory>
#include <optional>
#include <utility>

namespace cellkeep::cli {

/// Rethrows what the coroutine threw; kCancelled if the io_context was stopped first.
template <typename T>
Result<T> run_to_end(boost::asio::io_context& io, boost::asio::awaitable<Result<T>> task) {
    // Shared with the coroutine: after a stop it may go on, or be destroyed, without us.
    struct State {
        boost::asio::awaitable<Result<T>> task;
        std::optional<Result<T>> outcome;
        std::exception_ptr failure;
        bool ended = false;
    };
    const auto state =
        std::make_shared<State>(State{std::move(task), std::nullopt, nullptr, false});
    // Result has no default value, which co_spawn would need to hand it over.
    const auto keep = [state]() -> boost::asio::awaitable<void> {
        state->outcome.emplace(co_await std::move(state->task));
    };
    boost::asio::co_spawn(io, keep, [state](const std::exception_ptr& thrown) {
        state->failure = thrown;
        state->ended = true;
    });
    while (!state->ended && io.run_one() > 0) {
    }
    if (state->failure) {
        std::rethrow_exception(state->failure);
    }
    if (!state->outcome) {
        return Error(ErrorCode::kCancelled, "stopped");
    }
    return std::move(*state->outcome);
}

}  // namespace cellkeep::cli
