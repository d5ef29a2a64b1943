// SPDX-License-Identifier: Apache-2.0
//
// CPU time by a counter that may stop being readable: its file is gone, or the server has no
// descriptor left to open it. A deadline must come then too, so that time goes on by an estimate,
// which is never below the truth as long as the processor limit holds. Never goes back. Reads no
// clock and no file. Not thread-safe.
#pragma once

#include <chrono>
#include <optional>

namespace cellkeep::session {

class CpuClock {
 public:
    using Time = std::chrono::steady_clock::time_point;

    /// The CPU time now. counted: what the counter says, or nothing if it cannot be read.
    /// processors: how many may have been used at once since the last call; 0 if nothing ran.
    std::chrono::microseconds see(
        std::optional<std::chrono::microseconds> counted, double processors, Time now);

    /// The last see() had no counter.
    bool estimates() const { return estimates_; }

 private:
    std::chrono::microseconds time_{0};           // as see() had it last
    std::chrono::microseconds time_at_count_{0};  // … when the counter could be read
    std::chrono::microseconds counted_{0};        // the counter then
    std::optional<Time> seen_at_;
    bool estimates_ = false;
};

}  // namespace cellkeep::session
