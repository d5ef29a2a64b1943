// SPDX-License-Identifier: Apache-2.0
//
// Whether what a session's interpreter says is more than a run may say: bytes and messages, each a
// token bucket that is full when a run begins. Far above truncation, which only shortens answers;
// this ends a flood. Knows no clock. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cellkeep::session {

class OutputMeter {
 public:
    using Time = std::chrono::steady_clock::time_point;
    enum class Bound { kBytes, kMessages, kBudget };

    /// What one run may say at once in a session whose answers have this much text: the bound of
    /// limits::kOutputCutBytes and kOutputCutFactor.
    static std::uint64_t burst_bytes(std::uint64_t output_bytes);

    /// A run begins.
    void begin(std::uint64_t output_bytes, Time now);
    /// One more message; the bound that it passes, if it passes one. Never kBudget, which is the
    /// session's.
    std::optional<Bound> add(std::uint64_t bytes, Time now);

    /// Since begin().
    std::uint64_t bytes() const { return bytes_; }
    std::uint64_t messages() const { return messages_; }

 private:
    void refill(Time now);

    std::uint64_t burst_bytes_ = 0;
    std::uint64_t bytes_left_ = 0;
    std::uint64_t messages_left_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t messages_ = 0;
    Time refilled_at_;
};

}  // namespace cellkeep::session
