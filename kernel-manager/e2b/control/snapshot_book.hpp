// SPDX-License-Identifier: Apache-2.0
//
// What E2B's clients know of checkpoints that they have made: their names. The checkpoints are the
// sessions'; a snapshot is forgotten with its session. Bounded: of one session, only the newest are
// known (kSnapshotsMax), which is as many as it keeps. Not thread-safe.
#pragma once

#include "kernel-manager/http/access/principal.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::e2b {

struct Snapshot {
    std::string id;  // of its sandbox and its checkpoint
    std::string session_id;
    std::string checkpoint;
    std::string owner;                // principal
    std::optional<std::string> name;  // as asked
};

/// The id of a checkpoint among snapshots.
std::string snapshot_id_of(std::string_view session_id, std::string_view checkpoint);

class SnapshotBook {
 public:
    /// A checkpoint that is known already gets the name. Another snapshot of the same owner that
    /// had the name has none then.
    Snapshot keep(
        const std::string& session_id,
        const std::string& checkpoint,
        const std::string& owner,
        std::optional<std::string> name);
    /// By its id or name, with or without a tag behind a colon. Nullopt if there is none, or none
    /// that the principal may see.
    std::optional<Snapshot> find(const http::Principal& principal, std::string_view text) const;
    /// Those that the principal may see, newest first.
    std::vector<Snapshot> list(const http::Principal& principal) const;
    void forget(const std::string& id);
    void forget_session(const std::string& session_id);

    /// Oldest first, for another program in the server's process.
    const std::vector<Snapshot>& all() const { return snapshots_; }
    /// Of the program before, instead of what is here.
    void go_on(std::vector<Snapshot> snapshots) { snapshots_ = std::move(snapshots); }

 private:
    /// Oldest first.
    std::vector<Snapshot> snapshots_;
};

}  // namespace cellkeep::e2b
