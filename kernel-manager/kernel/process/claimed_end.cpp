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
    wait(Step::kAsk, deadline - std::chrono::steady_clock::now());
}

void ClaimedEnd::settle() {
    if (std::exchange(act_, nullptr)) {
        alarm_.rest();  // the next run's end is claimed soon
    }
}

void ClaimedEnd::wait(Step step, std::chrono::steady_clock::duration time) {
    step_ = step;
    alarm_.set_after(time, [this, step] { take(step); });
}

void ClaimedEnd::take(Step step) {
    const std::shared_ptr<const Act> act = act_;
    switch (step) {
        case Step::kAsk:
            wait(Step::kInterrupt, patience_);
            break;
        case Step::kInterrupt:
            wait(Step::kKill, grace_);
            break;
        case Step::kKill:
            act_ = nullptr;
            break;
    }
    (*act)(step);  // may settle the claim, or end this object
}

}  // namespace cellkeep::session
