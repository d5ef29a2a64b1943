// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/checkpoint_tree.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::checkpoint {

std::string_view to_string(NotForkable::Why why) {
    switch (why) {
        case NotForkable::Why::kLanguage:
            return "language";
        case NotForkable::Why::kThreads:
            return "threads";
        case NotForkable::Why::kThread:
            return "thread";
        case NotForkable::Why::kDebugger:
            return "debugger";
        case NotForkable::Why::kSystem:
            return "system";
    }
    return "system";
}

std::string_view to_string(OnThreads on_threads) {
    switch (on_threads) {
        case OnThreads::kCarry:
            return "carry";
        case OnThreads::kRefuse:
            return "refuse";
        case OnThreads::kDrop:
            return "drop";
    }
    return "refuse";
}

std::optional<OnThreads> to_on_threads(std::string_view name) {
    for (const auto one : {OnThreads::kCarry, OnThreads::kRefuse, OnThreads::kDrop}) {
        if (name == to_string(one)) {
            return one;
        }
    }
    return std::nullopt;
}

std::string_view to_string(Gone why) {
    switch (why) {
        case Gone::kDeleted:
            return "deleted";
        case Gone::kEvicted:
            return "evicted";
        case Gone::kDied:
            return "died";
    }
    return "died";
}

std::string_view to_string(AutoCheckpoints when) {
    switch (when) {
        case AutoCheckpoints::kOff:
            return "off";
        case AutoCheckpoints::kEach:
            return "each";
        case AutoCheckpoints::kCostly:
            return "costly";
    }
    return "off";
}

std::optional<std::string> CheckpointTree::find_automatic() const {
    const auto found =
        std::find_if(checkpoints_.begin(), checkpoints_.end(), [](const Checkpoint& one) {
            return one.automatic;
        });
    return found == checkpoints_.end() ? std::nullopt : std::optional(found->id);
}

void CheckpointTree::confirm(std::string_view id) {
    for (Checkpoint& one : checkpoints_) {
        one.automatic = one.automatic && one.id != id;
    }
}

std::optional<std::string> CheckpointTree::find_oldest(std::string_view kept) const {
    if (auto automatic = find_automatic(); automatic && *automatic != kept) {
        return automatic;
    }
    const auto oldest =
        std::find_if(checkpoints_.begin(), checkpoints_.end(), [&](const Checkpoint& one) {
            return !one.label.has_value() && one.id != kept;
        });
    return oldest == checkpoints_.end() ? std::nullopt : std::optional(oldest->id);
}

Result<std::optional<std::string>> CheckpointTree::find_victim(
    std::string_view kept, bool for_automatic) const {
    if (auto before = find_automatic(); for_automatic && before) {
        return before;
    }
    if (checkpoints_.size() < checkpoints_max_) {
        return std::optional<std::string>();
    }
    auto oldest = for_automatic ? std::nullopt : find_oldest(kept);
    if (!oldest) {
        return Error(
            ErrorCode::kLimitExceeded,
            "checkpoint: the session has " + std::to_string(checkpoints_.size()) +
                " checkpoints, as many as it may, and none of them can be evicted",
            "Delete one.");
    }
    return oldest;
}

void CheckpointTree::add(Checkpoint checkpoint) {
    origin_ = checkpoint.id;
    checkpoints_.push_back(std::move(checkpoint));
}

bool CheckpointTree::remove(const std::string& id, Gone why) {
    const auto found =
        std::find_if(checkpoints_.begin(), checkpoints_.end(), [&](const Checkpoint& one) {
            return one.id == id;
        });
    if (found == checkpoints_.end()) {
        return false;
    }
    const std::optional<std::string> parent = found->parent;
    checkpoints_.erase(found);
    for (Checkpoint& one : checkpoints_) {
        if (one.parent == id) {
            one.parent = parent;
        }
    }
    if (origin_ == id) {
        origin_ = parent;
    }
    gone_.emplace_back(id, why);
    if (gone_.size() > kGoneKept) {
        gone_.pop_front();
    }
    return true;
}

std::optional<Gone> CheckpointTree::find_gone(std::string_view id) const {
    const auto found =
        std::find_if(gone_.begin(), gone_.end(), [&](const auto& one) { return one.first == id; });
    return found == gone_.end() ? std::nullopt : std::optional(found->second);
}

const Checkpoint* CheckpointTree::find(std::string_view id) const {
    const auto found =
        std::find_if(checkpoints_.begin(), checkpoints_.end(), [&](const Checkpoint& one) {
            return one.id == id;
        });
    return found == checkpoints_.end() ? nullptr : &*found;
}

}  // namespace cellkeep::checkpoint
