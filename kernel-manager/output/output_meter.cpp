// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_meter.hpp"

#include "protocol/limits.hpp"

#include <algorithm>

namespace cellkeep::session {

std::uint64_t OutputMeter::burst_bytes(std::uint64_t output_bytes) {
    return std::max(limits::kOutputCutBytes, limits::kOutputCutFactor * output_bytes);
}

void OutputMeter::begin(std::uint64_t output_bytes, Time now) {
    burst_bytes_ = burst_bytes(output_bytes);
    bytes_left_ = burst_bytes_;
    messages_left_ = limits::kOutputCutMessages;
    bytes_ = 0;
    messages_ = 0;
    refilled_at_ = now;
}

void OutputMeter::refill(Time now) {
    // Whole seconds only: what is left of the present one counts when it is over.
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - refilled_at_);
    if (seconds.count() <= 0) {
        return;
    }
    refilled_at_ += seconds;
    // More seconds than fill it from empty add nothing.
    const auto most = static_cast<std::int64_t>(burst_bytes_ / limits::kOutputBytesPerSecond + 1);
    const auto count = static_cast<std::uint64_t>(std::min<std::int64_t>(seconds.count(), most));
    bytes_left_ = std::min(burst_bytes_, bytes_left_ + count * limits::kOutputBytesPerSecond);
    messages_left_ = std::min(
        limits::kOutputCutMessages, messages_left_ + count * limits::kOutputMessagesPerSecond);
}

std::optional<OutputMeter::Bound> OutputMeter::add(std::uint64_t bytes, Time now) {
    bytes_ += bytes;
    ++messages_;
    refill(now);
    std::optional<Bound> passed;
    if (messages_left_ == 0) {
        passed = Bound::kMessages;
    } else {
        --messages_left_;
    }
    if (bytes > bytes_left_) {
        bytes_left_ = 0;
        passed = Bound::kBytes;
    } else {
        bytes_left_ -= bytes;
    }
    return passed;
}

}  // namespace cellkeep::session
