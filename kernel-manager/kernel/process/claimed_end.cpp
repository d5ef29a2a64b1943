// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/claimed_end.hpp"

#include <utility>

namespace cellkeep::session {

void ClaimedEnd::watch(std::chrono::steady_clock::time_point deadline, Act act) {
    if (act_) {
        return;
    }
    act_ = std::make_shared<const Act>(std::move(act));
    deadline_ = deadline;
    wait(Step::kAsk, deadline);
}

void ClaimedEnd::settle() {
    if (std::exchange(act_, nullptr)) {
        timer_.cancel();
    }
}

void ClaimedEnd::wait(Step step, std::chrono::steady_clock::time_point until) {
    step_ = step;
    timer_.expires_at(until);
    // This object is there as long as the claim is: nothing else holds `act_`.
    timer_.async_wait([this, step, weak = std::weak_ptr<const Act>(act_)](
                          const boost::system::error_code& error) {
        const std::shared_ptr<const Act> act = weak.lock();
        if (error || !act) {
            return;
        }
        const auto now = std::chrono::steady_clock::now();
        switch (step) {
            case Step::kAsk:
                wait(Step::kInterrupt, now + patience_);
                break;
            case Step::kInterrupt:
                wait(Step::kKill, now + grace_);
                break;
            case Step::kKill:
                act_ = nullptr;
                break;
        }
        (*act)(step);  // may settle the claim, or end this object
    });
}

}  // namespace cellkeep::session
