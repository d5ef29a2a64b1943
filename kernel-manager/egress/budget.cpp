// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/budget.hpp"

namespace cellkeep::egress {

namespace {

constexpr std::chrono::seconds kWindow{60};

bool take(std::uint64_t& used, std::uint64_t most, std::uint64_t bytes) {
    // Another program may have let through more than this one does.
    if (used > most || bytes > most - used) {
        return false;
    }
    used += bytes;
    return true;
}

}  // namespace

bool MinuteAllowance::take(Clock::time_point now) {
    while (!recent_.empty() && now - recent_.front() >= kWindow) {
        recent_.pop_front();
    }
    if (recent_.size() >= most_) {
        return false;
    }
    recent_.push_back(now);
    return true;
}

bool Budget::take_up(std::uint64_t bytes) {
    return take(traffic_.bytes_up, most_.bytes_up_max, bytes);
}

bool Budget::take_down(std::uint64_t bytes) {
    return take(traffic_.bytes_down, most_.bytes_down_max, bytes);
}

}  // namespace cellkeep::egress
