// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/family.hpp"

#include <utility>

namespace cellkeep::session {

FamilyMember::FamilyMember(std::shared_ptr<FamilyMember> parent)
    : parent_(std::move(parent)), slot_(parent_->slot_), depth_(parent_->depth_ + 1) {
    ++parent_->branches_;
}

void FamilyMember::let_pass(const std::vector<pid_t>& numbers, std::uint32_t calls) const {
    std::size_t place = numbers.size();
    for (const FamilyMember* one = this; one != nullptr && place > 0; one = one->parent_.get()) {
        --place;
        if (one->let_pass_) {
            // Ignored: a process that may not pass is refused, and its leaving fails.
            (void)one->let_pass_(numbers[place], calls).has_value();
        }
    }
}

void FamilyMember::when_free(std::function<void()> call) {
    if (branches_ == 0) {
        call();
    } else {
        when_free_ = std::move(call);
    }
}

void FamilyMember::leave() {
    if (std::exchange(left_, true) || !parent_) {
        return;
    }
    --parent_->branches_;
    if (parent_->branches_ == 0) {
        if (const auto call = std::exchange(parent_->when_free_, nullptr)) {
            call();
        }
    }
}

}  // namespace cellkeep::session
