// SPDX-License-Identifier: Apache-2.0
//
// For how long a counter of bytes has stood still while somebody waited for it: how a watcher tells
// a peer that is slow from one that is gone.
#pragma once

#include <chrono>
#include <cstdint>

namespace cellkeep::http {

class Stillness {
 public:
    using Clock = std::chrono::steady_clock;

    explicit Stillness(Clock::time_point now) : since_(now) {}

    /// To be called again and again. Counts from the first look at which somebody waited.
    Clock::duration look(Clock::time_point now, bool waited_for, std::uint64_t bytes) {
        if (!waited_for || !waited_for_ || bytes != bytes_) {
            since_ = now;
        }
        waited_for_ = waited_for;
        bytes_ = bytes;
        return now - since_;
    }

 private:
    Clock::time_point since_;
    std::uint64_t bytes_ = 0;
    bool waited_for_ = false;
};

}  // namespace cellkeep::http
