// SPDX-License-Identifier: Apache-2.0
//
// A run is over when its kernel says so, and code inside can say it in the kernel's place and go
// on. So the run's deadline stays: a kernel that takes no request by then is asked one, and if it
// does not answer in time, the code that holds it is interrupted, and after a grace its interpreter
// is killed. Owned by one kernel. io_context thread only.
#pragma once

#include "protocol/limits.hpp"
#include "protocol/support/alarm.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace cellkeep::session {

/// A kernel that has said that a run is over has this long, from the run's deadline, to take a
/// request.
inline constexpr std::chrono::milliseconds kClaimedEndPatience{5000};

class ClaimedEnd {
 public:
    enum class Step { kAsk, kInterrupt, kKill };
    /// Called on the io_context's thread.
    using Act = std::function<void(Step)>;

    ClaimedEnd(
        boost::asio::io_context& io,
        KeepAlive keep_alive,
        std::chrono::milliseconds patience = kClaimedEndPatience,
        std::chrono::milliseconds grace = limits::kInterruptGrace)
        : patience_(patience), grace_(grace), alarm_(io, std::move(keep_alive)) {}

    /// The kernel says that a run is over whose deadline this is. While an earlier claim is open,
    /// its deadline stays.
    void watch(std::chrono::steady_clock::time_point deadline, Act act);
    /// The kernel has begun a later request, has answered, or is gone.
    void settle();
    /// The deadline of the claim that is open; nullopt: none is.
    std::optional<std::chrono::steady_clock::time_point> deadline() const {
        return act_ ? std::optional(deadline_) : std::nullopt;
    }
    /// The deadline has come, and the kernel has not proved the end yet.
    bool is_asking() const { return act_ && step_ != Step::kAsk; }

 private:
    void wait(Step step, std::chrono::steady_clock::duration time);
    void take(Step step);

    const std::chrono::milliseconds patience_;
    const std::chrono::milliseconds grace_;
    Alarm alarm_;
    std::chrono::steady_clock::time_point deadline_;
    Step step_ = Step::kAsk;          // the next one
    std::shared_ptr<const Act> act_;  // null: no claim is open
};

}  // namespace cellkeep::session
