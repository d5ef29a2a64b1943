// SPDX-License-Identifier: Apache-2.0
//
// One call in the future that can be cancelled. No call comes after cancel(), after rest(), after a
// later set_*() or after the end of the Alarm, even if its time has passed and its handler is
// queued. io_context thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace cellkeep {

/// Keeps the owner of an object alive during a call into it. Returns null while the owner is being
/// destroyed: then the call is skipped.
using KeepAlive = std::function<std::shared_ptr<const void>()>;

class Alarm {
 public:
    using Call = std::function<void()>;

    /// keep_alive is called before each call.
    Alarm(boost::asio::io_context& io, KeepAlive keep_alive)
        : keep_alive_(std::move(keep_alive)), timer_(io) {}
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    ~Alarm() = default;

    /// The call may set or cancel the alarm, and may end its owner.
    void set_after(std::chrono::steady_clock::duration time, Call call) {
        call_ = std::move(call);
        const Time now = std::chrono::steady_clock::now();
        due_ = time < Time::max() - now ? now + time : Time::max();
        // A timer that ends earlier waits for the rest then.
        if (!ticking_ || due_ < timer_.expiry()) {
            tick();
        }
    }
    void cancel() {
        call_ = nullptr;
        if (std::exchange(ticking_, false)) {
            ++tick_;
            timer_.cancel();
        }
    }
    /// Takes the call back as cancel() does, but lets the timer tick on. For what is set again and
    /// again: a timer that is cancelled and one that is set are work for the event loop, and a turn
    /// of it. Until the time has passed, the io_context has something to wait for.
    void rest() { call_ = nullptr; }
    bool is_set() const { return call_ != nullptr; }

 private:
    using Time = std::chrono::steady_clock::time_point;

    void tick() {
        ticking_ = true;
        timer_.expires_at(due_);
        timer_.async_wait([this, alive = std::weak_ptr<const bool>(alive_), tick = ++tick_](
                              const boost::system::error_code& /*error*/) {
            // One that was cancelled is not the newest any more.
            if (!alive.expired() && tick == tick_) {
                on_tick();
            }
        });
    }
    void on_tick() {
        ticking_ = false;
        if (!call_) {
            return;
        }
        if (timer_.expiry() < due_) {
            tick();
            return;
        }
        const Call call = std::exchange(call_, nullptr);
        if (const std::shared_ptr<const void> owner = keep_alive_()) {
            call();
        }
    }

    KeepAlive keep_alive_;
    boost::asio::steady_timer timer_;
    Call call_;  // null: it is not set
    Time due_;
    bool ticking_ = false;
    std::uint64_t tick_ = 0;  // the newest wait of the timer
    std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cellkeep
