// SPDX-License-Identifier: Apache-2.0
//
// How often an interpreter may die before it is left dead: a crash loop must end. The clock is the
// caller's.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <utility>

namespace cellkeep::session {

class RestartBudget {
 public:
    using Time = std::chrono::steady_clock::time_point;

    RestartBudget(std::size_t restarts_max, std::chrono::steady_clock::duration window)
        : restarts_max_(restarts_max), window_(window) {}

    /// Counts a death at now; false if restarts_max others were in the window before it.
    bool take(Time now) {
        while (!deaths_.empty() && now - deaths_.front() > window_) {
            deaths_.pop_front();
        }
        if (deaths_.size() >= restarts_max_) {
            return false;
        }
        deaths_.push_back(now);
        return true;
    }

    /// Somebody decided to try again.
    void reset() { deaths_.clear(); }

    /// Those that count, oldest first; and for a budget that goes on.
    const std::deque<Time>& deaths() const { return deaths_; }
    void set_deaths(std::deque<Time> deaths) { deaths_ = std::move(deaths); }

 private:
    std::size_t restarts_max_;
    std::chrono::steady_clock::duration window_;
    std::deque<Time> deaths_;
};

}  // namespace cellkeep::session
