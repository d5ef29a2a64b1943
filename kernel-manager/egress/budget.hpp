// SPDX-License-Identifier: Apache-2.0
//
// What one session has used of its network: requests in the last minute, bytes of its life. Counts
// and refuses; never waits. One thread.
#pragma once

#include "kernel-manager/egress/limits.hpp"
#include "kernel-manager/egress/network_policy.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace cellkeep::egress {

/// At most a number of events in any 60 seconds.
class MinuteAllowance {
 public:
    using Clock = std::chrono::steady_clock;

    explicit MinuteAllowance(std::size_t most) : most_(most) {}
    /// False if this would be one too many; then it does not count.
    bool take(Clock::time_point now);

    /// Those that may still count, the oldest first.
    const std::deque<Clock::time_point>& recent() const { return recent_; }
    void go_on(const std::vector<Clock::time_point>& recent) {
        recent_.assign(recent.begin(), recent.end());
    }

 private:
    std::size_t most_;
    std::deque<Clock::time_point> recent_;  // at most most_, or what it went on with
};

class Budget {
 public:
    using Clock = std::chrono::steady_clock;

    explicit Budget(const ProxyLimits& most)
        : most_(most), requests_(most.requests_per_minute_max) {}

    /// False if this would be one request too many in any 60 seconds; then it does not count.
    bool take_request(Clock::time_point now) { return requests_.take(now); }
    /// False if that would exceed the budget; then nothing is taken.
    bool take_up(std::uint64_t bytes);
    bool take_down(std::uint64_t bytes);
    bool up_left() const { return traffic_.bytes_up < most_.bytes_up_max; }
    bool down_left() const { return traffic_.bytes_down < most_.bytes_down_max; }
    void count_denied() { ++traffic_.denied; }
    void count_request() { ++traffic_.requests; }

    const Traffic& traffic() const { return traffic_; }
    const MinuteAllowance& requests() const { return requests_; }
    /// What another program has counted.
    void go_on(const Traffic& traffic, const std::vector<Clock::time_point>& requests) {
        traffic_ = traffic;
        requests_.go_on(requests);
    }

 private:
    ProxyLimits most_;
    Traffic traffic_;
    MinuteAllowance requests_;
};

}  // namespace cellkeep::egress
