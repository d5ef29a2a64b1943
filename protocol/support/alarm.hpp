// SPDX-License-Identifier: Apache-2.0
//
// One call in the future that can be cancelled. No call comes after cancel(), after a later set_*()
// or after the end of the Alarm, even if its time has passed and its handler is queued.
// io_context thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
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
        timer_.expires_after(time);
        wait(std::move(call));
    }
    void cancel() {
        if (std::exchange(call_, nullptr)) {
            timer_.cancel();
        }
    }
    bool is_set() const { return call_ != nullptr; }

 private:
    void wait(Call call) {
        call_ = std::make_shared<Call>(std::move(call));
        // Nothing else holds `call_`: if it is there, so is this object.
        timer_.async_wait(
            [this, weak = std::weak_ptr<Call>(call_)](const boost::system::error_code& error) {
                const std::shared_ptr<Call> armed = weak.lock();
                if (error || !armed) {
                    return;
                }
                const std::shared_ptr<const void> owner = keep_alive_();
                call_ = nullptr;
                if (owner) {
                    (*armed)();
                }
            });
    }

    KeepAlive keep_alive_;
    boost::asio::steady_timer timer_;
    std::shared_ptr<Call> call_;  // null: it is not set
};

}  // namespace cellkeep
