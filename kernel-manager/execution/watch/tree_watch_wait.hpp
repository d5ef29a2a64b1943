// SPDX-License-Identifier: Apache-2.0
//
// Waits until a watch has something to say, its reader goes, or a time has passed. io_context
// thread only.
#pragma once

#include "kernel-manager/execution/watch/tree_watch.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>

namespace cellkeep::session {

class TreeWatchWait : public std::enable_shared_from_this<TreeWatchWait> {
 public:
    static Result<std::shared_ptr<TreeWatchWait>> create(
        const boost::asio::any_io_executor& executor, const TreeWatch& watch);
    TreeWatchWait(const TreeWatchWait&) = delete;
    TreeWatchWait& operator=(const TreeWatchWait&) = delete;
    ~TreeWatchWait() = default;

    /// After a TreeWatch::next() without more. Returns whether all of the time has passed.
    boost::asio::awaitable<bool> wait(std::chrono::milliseconds time);
    void wake() { timer_.cancel(); }
    /// Before the watch goes.
    void close();

 private:
    explicit TreeWatchWait(const boost::asio::any_io_executor& executor)
        : timer_(executor), descriptor_(executor) {}

    boost::asio::steady_timer timer_;
    boost::asio::posix::stream_descriptor descriptor_;  // a duplicate: the watch keeps its own
    bool armed_ = false;
};

}  // namespace cellkeep::session
