// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/link/frame_memory.hpp"

#include "protocol/support/result.hpp"

#include <utility>

namespace cellkeep::session {

FrameMemory::FrameMemory(boost::asio::execution_context& context, std::size_t limit)
    : service(context), limit_(limit) {
    CELLKEEP_CHECK(limit >= limits::kFrameBytesMax);
}

FrameMemory::Claim::Claim(FrameMemory& memory, std::function<void()> on_granted)
    : memory_(memory), on_granted_(std::move(on_granted)) {}

bool FrameMemory::Claim::take(std::size_t bytes) {
    CELLKEEP_CHECK(held_ == 0 && !waits_ && bytes > 0 && bytes <= memory_.limit_);
    wanted_ = bytes;
    if (memory_.waiting_.empty() && memory_.fits(*this)) {
        memory_.grant(*this);
        return true;
    }
    waits_ = true;
    memory_.waiting_.push_back(this);
    return false;
}

void FrameMemory::Claim::release() {
    if (std::exchange(waits_, false)) {
        memory_.waiting_.remove(this);
    }
    memory_.used_ -= std::exchange(held_, 0);
    memory_.grant_waiting();
}

void FrameMemory::grant(Claim& claim) {
    claim.held_ = claim.wanted_;
    used_ += claim.held_;
}

void FrameMemory::grant_waiting() {
    while (!waiting_.empty() && fits(*waiting_.front())) {
        Claim& claim = *waiting_.front();
        waiting_.pop_front();
        claim.waits_ = false;
        grant(claim);
        claim.on_granted_();
    }
}

}  // namespace cellkeep::session
