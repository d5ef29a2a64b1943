// SPDX-License-Identifier: Apache-2.0
//
// How long to wait before trying again what failed: twice as long each time, up to a maximum. No
// clock, no timer.
#pragma once

#include <algorithm>
#include <chrono>

namespace cellkeep::session {

class RetryDelay {
 public:
    using Duration = std::chrono::milliseconds;

    RetryDelay(Duration first, Duration most) : first_(first), most_(most), next_(first) {}

    /// After a failure: wait this long.
    Duration take() {
        const Duration now = next_;
        next_ = std::min(next_ * 2, most_);
        return now;
    }
    /// It has worked.
    void reset() { next_ = first_; }

 private:
    Duration first_;
    Duration most_;
    Duration next_;
};

}  // namespace cellkeep::session
