// SPDX-License-Identifier: Apache-2.0
//
// Moments and durations as numbers, for another program in the same process: both clocks go on in
// it (clock_gettime(2): CLOCK_MONOTONIC is the machine's).
#pragma once

#include <chrono>
#include <cstdint>

namespace cellkeep {

template <typename Clock, typename Duration>
std::int64_t to_ticks(std::chrono::time_point<Clock, Duration> moment) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(moment.time_since_epoch()).count();
}

template <typename Moment>
Moment from_ticks(std::int64_t ticks) {
    return Moment(
        std::chrono::duration_cast<typename Moment::duration>(std::chrono::nanoseconds(ticks)));
}

}  // namespace cellkeep
