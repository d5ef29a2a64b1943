// SPDX-License-Identifier: Apache-2.0
//
// Has one of a session's sleeping copies keep a fork ready: that of the checkpoint that the session
// goes back to next, as far as can be told. A fork takes long if the memory is large; a rollback
// does not wait for a fork that is there. One copy at a time has one, because a fork costs a
// process and page tables. Owned by the session. io_context thread only.
#pragma once

#include "kernel-manager/kernel/process/sleeping_copy.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {

/// What must be left of a session's memory and processes besides, so that code that runs meanwhile
/// does not meet its limits. The fork's page tables are 1/512 of what is mapped.
inline constexpr std::uint64_t kRoomBesideReadyFork = 16ULL << 20U;
inline constexpr std::uint32_t kProcessesBesideReadyFork = 8;
/// An error, because the usage cannot be read, is no room.
bool has_room_for_ready_fork(const Result<sandbox::Usage>& known, const SessionLimits& limits);

class ReadyForkKeeper {
 public:
    /// None is empty.
    struct Hooks {
        /// Of a checkpoint; null: there is none.
        std::function<std::shared_ptr<SleepingCopy>(const std::string&)> copy_of;
        /// KernelStarter::wait_moved(): a fork stays in the cgroup that it is born in.
        std::function<boost::asio::awaitable<void>()> wait_moved;
        /// A client has paused the session. Then no fork is made or ended beforehand.
        std::function<bool()> is_paused;
        /// The session has memory and processes enough for one. Without room it would be the
        /// interpreter that the kernel kills.
        std::function<bool()> has_room;
        /// Thaws what is inside.
        std::function<void()> wake;
        /// It is at rest again.
        std::function<void()> settled;
    };

    ReadyForkKeeper(boost::asio::io_context& io, Hooks hooks, KeepAlive keep_session)
        : io_(io), hooks_(std::move(hooks)), keep_session_(std::move(keep_session)) {}
    ReadyForkKeeper(const ReadyForkKeeper&) = delete;
    ReadyForkKeeper& operator=(const ReadyForkKeeper&) = delete;
    ~ReadyForkKeeper() = default;

    /// Of the checkpoint, from now on. Does not wait; what fails costs its caller nothing but the
    /// time that a fork takes then.
    void begin(const std::string& checkpoint);
    /// Until no copy is asked for anything here.
    boost::asio::awaitable<void> wait();
    /// Until none is ready, but of the checkpoint that is excepted. Which one was let go.
    boost::asio::awaitable<std::optional<std::string>> let_go(std::string but = {});
    /// Before all else, in the program that a session passes to: that one's copy has a fork ready.
    void go_on(const std::string& checkpoint) { ready_ = checkpoint; }
    bool is_at_rest() const { return work_ == nullptr; }
    /// The session has ended, or goes on in another program.
    void close() { closed_ = true; }

 private:
    boost::asio::awaitable<void> prepare(std::string checkpoint);
    boost::asio::awaitable<void> let_go_of(std::string checkpoint);

    boost::asio::io_context& io_;
    const Hooks hooks_;
    const KeepAlive keep_session_;
    std::optional<std::string> ready_;        // the checkpoint whose copy was asked last
    std::shared_ptr<Completion<bool>> work_;  // null: none
    bool closed_ = false;
};

}  // namespace cellkeep::session
