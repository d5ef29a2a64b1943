// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/snapshot_book.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace cellkeep::e2b {

namespace {

constexpr std::string_view kCheckpointPrefix = "ckp_";

}  // namespace

std::string snapshot_id_of(std::string_view session_id, std::string_view checkpoint) {
    if (checkpoint.starts_with(kCheckpointPrefix)) {
        checkpoint.remove_prefix(kCheckpointPrefix.size());
    }
    return sandbox_id_of(session_id) + "-" + std::string(checkpoint);
}

Snapshot SnapshotBook::keep(
    const std::string& session_id,
    const std::string& checkpoint,
    const std::string& owner,
    std::optional<std::string> name) {
    Snapshot snapshot{snapshot_id_of(session_id, checkpoint), session_id, checkpoint, owner, {}};
    const auto same = [&snapshot](const Snapshot& one) { return one.id == snapshot.id; };
    if (const auto known = std::find_if(snapshots_.begin(), snapshots_.end(), same);
        known != snapshots_.end()) {
        snapshot.name = known->name;
        snapshots_.erase(known);
    }
    if (name) {
        for (Snapshot& one : snapshots_) {
            if (one.owner == owner && one.name == name) {
                one.name.reset();
            }
        }
        snapshot.name = std::move(name);
    }
    const auto of_session = [&session_id](const Snapshot& one) {
        return one.session_id == session_id;
    };
    const auto count = std::count_if(snapshots_.begin(), snapshots_.end(), of_session);
    if (static_cast<std::size_t>(count) >= kSnapshotsMax) {
        snapshots_.erase(std::find_if(snapshots_.begin(), snapshots_.end(), of_session));
    }
    snapshots_.push_back(snapshot);
    return snapshot;
}

std::optional<Snapshot> SnapshotBook::find(
    const http::Principal& principal, std::string_view text) const {
    const std::string_view name = text.substr(0, text.find(':'));
    const auto fits = [&principal, name](const Snapshot& one) {
        return (one.id == name || one.name == name) && http::may_see(principal, one.owner);
    };
    const auto found = std::find_if(snapshots_.rbegin(), snapshots_.rend(), fits);
    return found == snapshots_.rend() ? std::nullopt : std::optional(*found);
}

std::vector<Snapshot> SnapshotBook::list(const http::Principal& principal) const {
    std::vector<Snapshot> visible;
    std::copy_if(
        snapshots_.rbegin(),
        snapshots_.rend(),
        std::back_inserter(visible),
        [&principal](const Snapshot& one) { return http::may_see(principal, one.owner); });
    return visible;
}

void SnapshotBook::forget(const std::string& id) {
    std::erase_if(snapshots_, [&id](const Snapshot& one) { return one.id == id; });
}

void SnapshotBook::forget_session(const std::string& session_id) {
    std::erase_if(
        snapshots_, [&session_id](const Snapshot& one) { return one.session_id == session_id; });
}

}  // namespace cellkeep::e2b
