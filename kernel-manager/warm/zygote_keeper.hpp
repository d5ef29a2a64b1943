// SPDX-License-Identifier: Apache-2.0
//
// Keeps one zygote ready for one language and environment: makes it in the background, makes
// another when it has died or served long enough, and backs off when that fails. Sessions that come
// while there is none start without one. Owns the zygote and the thread that makes it. Sandboxes
// made by a zygote share it and its thread: they may outlive the keeper. io_context thread only.
#pragma once

#include "kernel-manager/warm/retry_delay.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/server/zygote.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace cellkeep::session {

/// All forks of a zygote have its address space's layout and its seed of str hashes (SECURITY.md):
/// after a number of forks, or a time, another takes its place.
inline constexpr std::size_t kZygoteForksMax = 1000;
inline constexpr std::chrono::minutes kZygoteAgeMax{60};
/// After a failure the next is tried this much later, then twice that, and so on.
inline constexpr std::chrono::milliseconds kZygoteRetryFirst{1000};
inline constexpr std::chrono::milliseconds kZygoteRetryMost{60'000};

struct ZygoteBounds {
    std::size_t forks = kZygoteForksMax;
    std::chrono::milliseconds age = kZygoteAgeMax;
    bool tries_again = true;  // after a failure
};

class ZygoteKeeper : public std::enable_shared_from_this<ZygoteKeeper> {
 public:
    using ZygotePtr = std::shared_ptr<sandbox::Zygote>;
    struct Hooks {
        /// Blocks for seconds, or until given_up says true; on a thread of the keeper's.
        std::function<Result<ZygotePtr>(const std::function<bool()>& given_up)> make;
        std::function<void(const std::string&)> log;
    };

    static std::shared_ptr<ZygoteKeeper> create(
        boost::asio::io_context& io, Hooks hooks, ZygoteBounds bounds = {});
    ZygoteKeeper(const ZygoteKeeper&) = delete;
    ZygoteKeeper& operator=(const ZygoteKeeper&) = delete;
    /// Waits for the one being made, which gives up when stop() has been called.
    ~ZygoteKeeper() = default;

    /// Begins to make one, in the background; does nothing if one is being made.
    void begin();
    /// One that lives, for one fork; null if there is none now.
    ZygotePtr take();
    /// What was made by this one works.
    void fork_succeeded(const ZygotePtr& zygote);
    /// It has not made what could be made without it: another takes its place.
    void fork_failed(const ZygotePtr& zygote);
    /// While there is none yet: waits for the one being made, if one is.
    boost::asio::awaitable<void> wait_for_first();
    /// No more of them; the one that is ready is let go, and waiting callers go on without one.
    void stop();
    /// The same, but the sessions that it has made live on.
    void retire();

 private:
    ZygoteKeeper(boost::asio::io_context& io, Hooks hooks, ZygoteBounds bounds);
    void on_made(Result<ZygotePtr> made);
    /// Linux ends a zygote's pid 1 with the thread that made it (Sandbox::create), and with that
    /// pid 1 all that the zygote has made: so the last of its owners ends the thread, too.
    static ZygotePtr with_thread(ZygotePtr zygote, std::shared_ptr<WorkThread> thread);
    void begin_later();
    void close();
    void settle(bool made);

    boost::asio::io_context& io_;
    Hooks hooks_;
    ZygoteBounds bounds_;
    ZygotePtr current_;
    std::size_t forks_ = 0;
    std::chrono::steady_clock::time_point made_at_;
    std::shared_ptr<Completion<bool>> making_;
    boost::asio::steady_timer retry_timer_;
    RetryDelay retry_delay_{kZygoteRetryFirst, kZygoteRetryMost};
    bool waiting_ = false;  // for retry_timer_
    bool stopped_ = false;
    /// stopped_, for the thread.
    std::shared_ptr<std::atomic<bool>> given_up_ = std::make_shared<std::atomic<bool>>(false);
    std::shared_ptr<WorkThread> maker_;  // while one is being made; last: it ends first
};

}  // namespace cellkeep::session
