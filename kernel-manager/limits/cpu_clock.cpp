// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/cpu_clock.hpp"

#include <algorithm>

namespace cellkeep::session {

using std::chrono::microseconds;

microseconds CpuClock::see(std::optional<microseconds> counted, double processors, Time now) {
    const Time before = seen_at_.value_or(now);
    seen_at_ = now;
    estimates_ = !counted.has_value();
    if (counted.has_value()) {
        // What was used while nothing could be read is in the counter, too.
        time_ = std::max(time_, time_at_count_ + (*counted - counted_));
        time_at_count_ = time_;
        counted_ = *counted;
        return time_;
    }
    const std::chrono::duration<double, std::micro> elapsed = now - before;
    time_ += microseconds(static_cast<microseconds::rep>(elapsed.count() * processors));
    return time_;
}

}  // namespace cellkeep::session
