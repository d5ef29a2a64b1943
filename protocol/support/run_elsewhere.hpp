// SPDX-License-Identifier: Apache-2.0
//
// Waits for work that a work thread does in slices. Called on the io_context thread; so is what
// follows.
#pragma once

#include "kernel-manager/execution/work_thread.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace cellkeep::checkpoint {

/// The slice is called on the thread until it has an answer. It owns all that it touches.
template <typename T>
boost::asio::awaitable<T> run_elsewhere(
    boost::asio::io_context& io,
    std::shared_ptr<session::WorkThread> thread,
    std::function<std::optional<T>()> slice) {
    const auto done = std::make_shared<Completion<T>>(io);
    // The guard keeps the io_context running until the answer is there.
    thread->run([done, slice = std::move(slice), work = boost::asio::make_work_guard(io)] {
        std::optional<T> answer = slice();
        if (!answer.has_value()) {
            return session::WorkThread::Slice::kMore;
        }
        boost::asio::post(work.get_executor(), [done, answer = std::move(*answer)]() mutable {
            done->set(std::move(answer));
        });
        return session::WorkThread::Slice::kDone;
    });
    co_return co_await Completion<T>::wait(done);
}

}  // namespace cellkeep::checkpoint
