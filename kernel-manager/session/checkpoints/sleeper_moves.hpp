// SPDX-License-Identifier: Apache-2.0
//
// Moves the copies that sleep in a session's sandbox out of its interpreter's cgroup, where they
// are born or left (sandbox::WorkerSpec::born_in). The kernel takes some milliseconds for that.
// Only who goes on from a copy waits for it. Owned by the session. io_context thread only.
#pragma once

#include "protocol/support/alarm.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/unique_fd.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace cellkeep::session {

class SleeperMoves {
 public:
    /// The sandbox stays where it is. wait_empty ends when no process of an interpreter that was
    /// left is in the cgroup that the copies are moved to.
    SleeperMoves(
        boost::asio::io_context& io,
        sandbox::Sandbox& sandbox,
        std::shared_ptr<WorkThread> thread,
        std::function<boost::asio::awaitable<void>()> wait_empty,
        KeepAlive keep_session);
    SleeperMoves(const SleeperMoves&) = delete;
    SleeperMoves& operator=(const SleeperMoves&) = delete;
    ~SleeperMoves() = default;

    /// A copy that pid 1 has adopted. Those that have ended are forgotten.
    void add(const UniqueFd& pidfd);
    /// If the sandbox has sleepers elsewhere. A copy that cannot be moved is killed. One that was
    /// added while others are moved comes behind them.
    void begin();
    /// All are where they should be.
    bool is_at_rest() const { return !moving_ && !sandbox_.has_stray_sleepers(); }
    /// Returns when all are where they should be.
    boost::asio::awaitable<void> wait();

 private:
    using Sleepers = std::vector<std::shared_ptr<const UniqueFd>>;
    boost::asio::awaitable<void> move_all();

    boost::asio::io_context& io_;
    sandbox::Sandbox& sandbox_;
    const std::shared_ptr<WorkThread> thread_;
    const std::function<boost::asio::awaitable<void>()> wait_empty_;
    const KeepAlive keep_session_;
    Sleepers sleepers_;
    bool added_ = false;                        // since the last move began
    std::shared_ptr<Completion<bool>> moving_;  // null: none
};

}  // namespace cellkeep::session
