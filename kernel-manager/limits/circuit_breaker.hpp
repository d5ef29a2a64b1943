// SPDX-License-Identifier: Apache-2.0
//
// Stops an agent that fails again and again. Closed: executions run. After `threshold` failing ones
// in a row it opens: executions are refused for a while. Then it is half open: one execution may
// try; if it succeeds the breaker closes, if it fails the breaker opens for twice as long
// (limits::kBreakerCooldownFirst, kBreakerCooldownMax). Knows no clock: callers say what time it
// is. Not thread-safe.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/limits/limit_refusal.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cellkeep::session {

enum class CircuitState { kClosed, kOpen, kHalfOpen };
std::string_view to_string(CircuitState state);

struct CircuitInfo {
    CircuitState state = CircuitState::kClosed;
    std::uint32_t failures = 0;                            // in a row, up to now
    std::uint32_t threshold = 0;                           // 0: the breaker is off
    std::optional<std::chrono::milliseconds> retry_after;  // while open
};

/// How an execution's end counts for the breaker. An interrupted one does not: a client asked for
/// it.
enum class CircuitVote { kSuccess, kFailure, kNone };
CircuitVote vote_of(ExecutionStatus status);

class CircuitBreaker {
 public:
    using Time = std::chrono::steady_clock::time_point;

    explicit CircuitBreaker(std::uint32_t threshold) : threshold_(threshold) {}

    CircuitInfo info(Time now) const;
    /// Why an execution is refused now: the breaker is open, or half open and its one try runs.
    std::optional<LimitRefusal> refusal(Time now) const;

    /// An execution was accepted. Every accepted one ends with on_end.
    void on_accepted() { ++running_; }
    void on_end(CircuitVote vote, Time now);

    /// What it knows while nothing runs, for another program in this process, and from one.
    struct Passed {
        std::uint32_t failures = 0;
        std::optional<Time> open_until;
        std::chrono::seconds cooldown{0};
    };
    Passed pass_on() const { return {failures_, open_until_, cooldown_}; }
    void go_on(const Passed& passed) {
        failures_ = passed.failures;
        open_until_ = passed.open_until;
        cooldown_ = passed.cooldown;
    }

 private:
    CircuitState state(Time now) const;
    void open(Time now);

    std::uint32_t threshold_;
    std::uint32_t failures_ = 0;
    std::uint32_t running_ = 0;         // accepted and not ended
    std::optional<Time> open_until_;    // set: open, then half open
    std::chrono::seconds cooldown_{0};  // of the last opening
};

}  // namespace cellkeep::session
