// SPDX-License-Identifier: Apache-2.0
//
// Waits for work that a work thread does in slices. Called on the io_context thread; so is what
// follows.
#pragma once

#include "protocol/support/completion.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace cellkeep {

/// The slice is called on the thread until it has an answer or throws; that is what the caller
/// gets. The slice owns all that it touches, and is destroyed on the thread. The answer is moved.
/// The thread must be there until the work has begun to wait.
template <typename T>
boost::asio::awaitable<T> run_elsewhere(
    boost::asio::io_context& io, WorkThread& thread, std::function<std::optional<T>()> slice) {
    struct Outcome {
        std::optional<T> answer;
        std::exception_ptr thrown;
    };
    const auto outcome = std::make_shared<Outcome>();
    const auto done = std::make_shared<Completion<bool>>(io);
    // The guard keeps the io_context running until the answer is there.
    thread.run([outcome = outcome,
                done = done,
                slice = std::move(slice),
                work = boost::asio::make_work_guard(io)]() mutable {
        try {
            outcome->answer = slice();
        } catch (const std::exception&) {
            outcome->thrown = std::current_exception();
        }
        if (!outcome->answer.has_value() && outcome->thrown == nullptr) {
            return WorkThread::Slice::kMore;
        }
        outcome.reset();  // it is the event loop's from here, as `done`
        boost::asio::post(work.get_executor(), [done = std::move(done)] { done->set(true); });
        return WorkThread::Slice::kDone;
    });
    (void)co_await Completion<bool>::wait(done);
    if (outcome->thrown != nullptr) {
        std::rethrow_exception(outcome->thrown);
    }
    co_return std::move(*outcome->answer);
}

}  // namespace cellkeep
