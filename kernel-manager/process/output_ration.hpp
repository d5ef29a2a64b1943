// SPDX-License-Identifier: Apache-2.0
//
// How much of what a session's commands write is read in one period (limits.hpp). Values only; the
// clock is the caller's. Not thread-safe.
#pragma once

#include "kernel-manager/process/limits.hpp"

#include <chrono>
#include <cstddef>
#include <optional>

namespace cellkeep::process {

class OutputRation {
 public:
    using Time = std::chrono::steady_clock::time_point;

    /// So much has been read. How long nothing more is to be read, if this was all that the period
    /// had.
    std::optional<std::chrono::steady_clock::duration> take(std::size_t bytes, Time now) {
        if (now - began_ >= kOutputPeriod) {
            began_ = now;
            bytes_ = 0;
        }
        bytes_ += bytes;
        if (bytes_ < kOutputBytesPerPeriod) {
            return std::nullopt;
        }
        return began_ + kOutputPeriod - now;
    }

 private:
    Time began_;
    std::size_t bytes_ = 0;
};

}  // namespace cellkeep::process
