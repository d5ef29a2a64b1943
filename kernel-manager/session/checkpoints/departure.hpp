// SPDX-License-Identifier: Apache-2.0
//
// The end of an interpreter whose successor is there already. It and all that it has started are
// stopped, which takes the kernel a moment; nothing that they do follows, and the successor may
// begin. When it has, they are killed. Linux takes some milliseconds of a processor to take their
// memory and their files apart. Owned by the session. io_context thread only.
#pragma once

#include "protocol/support/alarm.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/cgroup/halted_leaf.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>

namespace cellkeep::session {

/// What does not stop in this time is killed and waited for. It would mostly not end sooner.
inline constexpr std::chrono::milliseconds kHaltPatience{50};
/// What has stopped is killed after this time, unless end() was called before.
inline constexpr std::chrono::seconds kStillPatience{1};

class Departure {
 public:
    struct Hooks {
        /// sandbox::Sandbox::halt() of the interpreter's group.
        std::function<Result<sandbox::HaltedLeaf>()> halt;
        /// sandbox::Sandbox::give_way() of it. An error: what has stopped goes on.
        std::function<Status()> give_way;
        /// Nothing is left of what was stopped, or the patience for that is over.
        std::function<void()> gone;
    };

    Departure(boost::asio::io_context& io, Hooks hooks, KeepAlive keep_session)
        : io_(io), hooks_(std::move(hooks)), keep_session_(std::move(keep_session)) {}
    Departure(const Departure&) = delete;
    Departure& operator=(const Departure&) = delete;
    ~Departure() = default;

    /// Until then nothing of the group may be started. True: none of it will run any more. False:
    /// they are as they were.
    using Halted = std::function<void(bool)>;
    /// False: it cannot be done, and the call does not come. Not while another is under way.
    bool begin(Halted halted);
    /// The successor has begun: it does not need the processor any more that the end takes.
    void end();
    bool is_under_way() const { return under_way_ != nullptr; }
    /// Looks whether all is over. After the exit of a process: the cgroup tells of one change at
    /// once, and of the next one some 10 ms later.
    void look();
    /// Until none is.
    boost::asio::awaitable<void> wait();
    /// The session has ended: neither Halted nor Hooks::gone is called any more.
    void close();

 private:
    struct Watched;
    boost::asio::awaitable<void> depart(std::shared_ptr<Watched> watched, Halted halted);

    boost::asio::io_context& io_;
    const Hooks hooks_;
    const KeepAlive keep_session_;
    std::shared_ptr<Completion<bool>> under_way_;  // null: none
    std::weak_ptr<Watched> watched_;
    bool closed_ = false;
};

}  // namespace cellkeep::session
