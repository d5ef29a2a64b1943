// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of one session: which came from which, where the running interpreter came from,
// and how many there may be. Owns values; the processes are the session's. Not thread-safe.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::checkpoint {

/// Of how many removed checkpoints the reason is kept.
inline constexpr std::size_t kGoneKept = 64;

class CheckpointTree {
 public:
    /// checkpoints_max: at least 1.
    explicit CheckpointTree(std::size_t checkpoints_max) : checkpoints_max_(checkpoints_max) {}

    /// Which one has to go before another one comes: the automatic one, or the oldest without a
    /// label, that is not `kept`; nullopt if there is room. kLimitExceeded if all others have
    /// labels. For an automatic one only the automatic one goes, and always does.
    Result<std::optional<std::string>> find_victim(
        std::string_view kept = {}, bool for_automatic = false) const;
    /// The automatic one; nullopt: there is none.
    std::optional<std::string> find_automatic() const;
    /// A client has asked for that one: it is not automatic any more.
    void confirm(std::string_view id);
    /// The automatic one, or the oldest without a label, that is not `kept`; nullopt: there is
    /// none.
    std::optional<std::string> find_oldest(std::string_view kept = {}) const;
    /// The new one becomes the running interpreter's origin. Precondition: there is room.
    void add(Checkpoint checkpoint);
    /// Those that came from it come from its parent from now on. False: there is none.
    bool remove(const std::string& id, Gone why);
    /// Of one that was removed, if it is among the last kGoneKept.
    std::optional<Gone> find_gone(std::string_view id) const;
    /// Null: there is none. Valid until the next change.
    const Checkpoint* find(std::string_view id) const;
    /// Oldest first.
    const std::vector<Checkpoint>& list() const { return checkpoints_; }
    bool empty() const { return checkpoints_.empty(); }

    /// The checkpoint that the running interpreter was copied to, or came from, last; nullopt: it
    /// began afresh.
    const std::optional<std::string>& origin() const { return origin_; }
    void set_origin(std::optional<std::string> id) { origin_ = std::move(id); }

    using GoneOnes = std::deque<std::pair<std::string, Gone>>;  // the newest last
    const GoneOnes& gone() const { return gone_; }
    /// Of the program before in the server's process. At most kGoneKept.
    void set_gone(GoneOnes gone) { gone_ = std::move(gone); }

 private:
    std::size_t checkpoints_max_;
    std::vector<Checkpoint> checkpoints_;
    std::optional<std::string> origin_;
    GoneOnes gone_;
};

}  // namespace cellkeep::checkpoint
