// SPDX-License-Identifier: Apache-2.0
//
// How often pid 1 tells the server of refused calls: a bucket of kDenialReportsBurst tokens that
// fills by one per kDenialReportPeriodMs. Values only; the caller brings the time.
#pragma once

#include "sandbox/shared/messages.hpp"

#include <cstdint>

namespace cellkeep::sandbox {

class DenialBudget {
 public:
    /// now_ms: milliseconds of a clock that does not go back.
    constexpr void refill(std::int64_t now_ms) {
        const std::int64_t periods = (now_ms - refilled_ms_) / kDenialReportPeriodMs;
        if (periods > 0) {
            const std::int64_t room = kDenialReportsBurst - tokens_;
            tokens_ += static_cast<std::uint32_t>(periods < room ? periods : room);
            refilled_ms_ += periods * kDenialReportPeriodMs;
        }
    }
    constexpr bool has_token() const { return tokens_ > 0; }
    /// Precondition: has_token().
    constexpr void spend() { --tokens_; }
    /// Until the next refill() that adds one.
    constexpr int wait_ms(std::int64_t now_ms) const {
        const std::int64_t left = refilled_ms_ + kDenialReportPeriodMs - now_ms;
        return static_cast<int>(left > 0 ? left : 0);
    }

 private:
    std::int64_t refilled_ms_ = 0;
    std::uint32_t tokens_ = kDenialReportsBurst;
};

}  // namespace cellkeep::sandbox
