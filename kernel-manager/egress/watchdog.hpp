// SPDX-License-Identifier: Apache-2.0
//
// One deadline over whatever a connection waits for. When it passes, the action given at the start
// runs and ends what was waiting; it runs again until the next arm() or disarm(), because what
// waits may have been between two of its steps. The next arm() is a new deadline. io_context thread
// only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace cellkeep::egress {

class Watchdog {
 public:
    using Clock = std::chrono::steady_clock;

    explicit Watchdog(const boost::asio::any_io_executor& executor)
        : state_(std::make_shared<State>(executor)) {}
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;
    ~Watchdog() { stop(); }

    /// Before the first arm().
    void on_expiry(std::function<void()> action) { state_->action = std::move(action); }

    /// From now on; what was set before no longer counts. Cheap when the deadline moves away.
    void arm(std::chrono::milliseconds patience) {
        state_->expired = false;
        state_->deadline = Clock::now() + patience;
        if (state_->deadline < state_->wakes_at) {
            wait(state_);
        }
    }
    void disarm() { state_->deadline = Clock::time_point::max(); }
    /// For good.
    void stop() {
        state_->action = nullptr;
        disarm();
        state_->timer.cancel();
    }
    /// Since the last arm().
    bool expired() const { return state_->expired; }

 private:
    struct State {
        explicit State(const boost::asio::any_io_executor& executor) : timer(executor) {}
        boost::asio::steady_timer timer;
        Clock::time_point deadline = Clock::time_point::max();
        Clock::time_point wakes_at = Clock::time_point::max();
        std::function<void()> action;
        bool expired = false;
    };

    static void wait(const std::shared_ptr<State>& state) {
        state->wakes_at = state->deadline;
        state->timer.expires_at(state->wakes_at);
        state->timer.async_wait(
            [weak = std::weak_ptr(state)](const boost::system::error_code& error) {
                const auto self = weak.lock();
                if (error || !self) {
                    return;
                }
                self->wakes_at = Clock::time_point::max();
                if (Clock::now() < self->deadline) {
                    if (self->deadline != Clock::time_point::max()) {
                        wait(self);
                    }
                    return;
                }
                self->expired = true;
                const auto action = self->action;  // a copy: it may be replaced by stop()
                if (!action) {
                    return;
                }
                const Clock::time_point passed = self->deadline;
                action();
                if (self->action && self->deadline == passed) {
                    self->deadline = Clock::now() + kRepeat;
                    wait(self);
                }
            });
    }

    static constexpr std::chrono::milliseconds kRepeat{500};

    std::shared_ptr<State> state_;
};

}  // namespace cellkeep::egress
