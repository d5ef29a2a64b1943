// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/artifacts/artifact_tracker.hpp"

#include "sandbox/workspace/workspace_walker.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace cellkeep::session {

using sandbox::EntryKind;
using sandbox::FileState;

namespace {

/// The clock that the kernel stamps inodes with (ktime_get_coarse_real_ts64).
std::int64_t file_clock_now() {
    constexpr std::int64_t kSecond = 1'000'000'000;
    timespec now{};
    (void)::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // cannot fail for a clock that exists
    return now.tv_sec * kSecond + now.tv_nsec;
}

/// Time that this thread has used a processor. On a busy host a look takes long because others run;
/// that is not the guest's doing.
std::chrono::nanoseconds processor_time() {
    timespec used{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);  // cannot fail for a clock that exists
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// Belongs to no execution.
bool is_left_out(std::string_view path) {
    return sandbox::is_server_path(path) || path.substr(0, path.find('/')) == kPackagesDirectory;
}

}  // namespace

ArtifactTracker::ArtifactTracker(
    const sandbox::Workspace& workspace, std::function<void(UniqueFd)> close, Watching watching)
    : workspace_(workspace), close_(std::move(close)), wanted_(watching) {}

ArtifactTracker::~ArtifactTracker() {
    stop_watching();
}

void ArtifactTracker::stop_watching() {
    if (watch_.has_value()) {
        close_(watch_->release());
        watch_.reset();
    }
}

void ArtifactTracker::begin() {
    unchanged_ = false;
    Changes unowned;
    update(unowned);
    started_ = true;
    begun_at_ = file_clock_now();
}

ArtifactTracker::Changes ArtifactTracker::take() {
    Changes changes;
    if (!started_) {
        changes.complete = false;
        return changes;
    }
    if (std::exchange(unchanged_, false)) {
        return changes;
    }
    update(changes);
    changes.complete = changes.complete && listing_complete_;
    return changes;
}

std::size_t ArtifactTracker::passed_bytes() const {
    return listing_.size() > kPassedListingMax
               ? 0
               : listing_bytes_ + listing_.size() * sizeof(FileState);
}

ArtifactTracker::Passed ArtifactTracker::pass_on() {
    Passed passed;
    passed.begun_at = begun_at_;
    if (started_ && listing_.size() <= kPassedListingMax) {
        passed.listing = std::move(listing_);
        passed.complete = listing_complete_;
    }
    return passed;
}

void ArtifactTracker::go_on(Passed passed) {
    started_ = true;
    unchanged_ = false;
    begun_at_ = passed.begun_at;
    listing_ = std::move(passed.listing);
    listing_complete_ = passed.complete;
    listing_bytes_ = 0;
    for (const auto& [path, state] : listing_) {
        listing_bytes_ += path.size();
    }
}

void ArtifactTracker::update(Changes& changes) {
    WorkspaceWatch::Notes notes;
    if (watch_.has_value()) {
        notes = watch_->drain();
        notes.lost = notes.lost || notes.changed.size() + notes.closed.size() > kFollowedNamesMax ||
                     notes.appeared.size() + notes.vanished.size() > kFollowedNamesMax;
        if (!notes.lost) {
            follow(notes, changes);
        }
    }
    if (watch_.has_value() && !notes.lost && listing_complete_) {
        return;
    }
    if (std::chrono::steady_clock::now() < next_look_) {
        listing_complete_ = false;
        changes.complete = false;
        return;
    }
    const auto before = processor_time();
    look_at_everything(changes);
    if (const auto cost = processor_time() - before; cost > kLookFree) {
        next_look_ = std::chrono::steady_clock::now() + kLookRest * cost;
    }
}

void ArtifactTracker::look_at_everything(Changes& changes) {
    // Only where it can succeed: taking marks back costs more than the look.
    if (!watch_.has_value() && wanted_ == Watching::kIfPossible &&
        directories_ <= kWatchedDirectoriesMax) {
        if (auto made = WorkspaceWatch::create(); made.has_value()) {
            watch_.emplace(std::move(made).value());
        }
    }
    directories_ = 0;
    look_below("", changes, /*rebuild=*/true);
}

void ArtifactTracker::look_below(const std::string& path, Changes& changes, bool rebuild) {
    sandbox::WorkspaceWalker walker(workspace_, path);
    walker.leave_out(std::string(kPackagesDirectory));
    walker.set_on_directory([this](const std::string& directory, int fd) {
        ++directories_;
        if (watch_.has_value() && watch_->add(fd, directory).has_error()) {
            if (watch_->directories() < kWatchedDirectoriesMax) {
                wanted_ = Watching::kNever;  // the host has no more to give
            }
            stop_watching();
        }
    });
    std::map<std::string, FileState> before;
    if (rebuild) {
        // What is not found again is gone.
        before = std::exchange(listing_, {});
        listing_bytes_ = 0;
    }
    const bool known_whole = std::exchange(listing_complete_, listing_complete_ || rebuild);
    while (const auto entry = walker.next()) {
        if (entry->state.kind != EntryKind::kFile) {
            continue;
        }
        if (!rebuild) {
            compare(entry->path, entry->state, changes);
            continue;
        }
        const auto known = before.find(entry->path);
        const bool old = known == before.end() && !known_whole && entry->state.changed < begun_at_;
        if (known == before.end() ? !old : known->second != entry->state) {
            const auto change =
                known == before.end() ? Artifact::Change::kCreated : Artifact::Change::kModified;
            changes.files[entry->path] = {change, entry->state};
        }
        remember(entry->path, entry->state);
    }
    if (!walker.complete()) {
        listing_complete_ = false;
    }
    changes.complete = changes.complete && known_whole && listing_complete_;
}

void ArtifactTracker::follow(const WorkspaceWatch::Notes& notes, Changes& changes) {
    for (const std::string& path : notes.appeared) {
        // Below one that is looked through anyway?
        bool covered = is_left_out(path);
        for (std::size_t end = path.find('/'); end != std::string::npos && !covered;
             end = path.find('/', end + 1)) {
            covered = notes.appeared.contains(path.substr(0, end));
        }
        if (!covered) {
            look_below(path, changes, /*rebuild=*/false);
        }
    }
    for (const std::string& path : notes.changed) {
        if (!is_left_out(path)) {
            look_at(path, Evidence::kWritten, changes);
        }
    }
    for (const std::string& path : notes.closed) {
        if (!is_left_out(path) && !notes.changed.contains(path)) {
            look_at(path, Evidence::kClosed, changes);
        }
    }
    for (const std::string& path : notes.vanished) {
        forget_below(path, changes);
    }
}

void ArtifactTracker::look_at(const std::string& path, Evidence evidence, Changes& changes) {
    const auto state = workspace_.state(path);
    if (state.has_error() || state.value().kind != EntryKind::kFile) {
        forget(path);
        changes.files.erase(path);
        return;
    }
    const auto known = listing_.find(path);
    if (evidence == Evidence::kWritten && known != listing_.end() &&
        known->second == state.value() && state.value().changed >= begun_at_) {
        // Written in the same tick of the clock as before, with the same size: only the note tells.
        // A close proves nothing. It can come late: a process that looks into /proc/PID/fd, and
        // a fork before its exec, keeps a file open after its writer has closed it.
        changes.files.try_emplace(path, Change{Artifact::Change::kModified, state.value()});
        return;
    }
    compare(path, state.value(), changes);
}

void ArtifactTracker::compare(const std::string& path, const FileState& state, Changes& changes) {
    const auto known = listing_.find(path);
    if (known != listing_.end() && known->second == state) {
        return;
    }
    const bool created = known == listing_.end();
    // By its new state, but what it was before the first look stays what it was.
    const auto [noted, first] = changes.files.try_emplace(path);
    if (first) {
        noted->second.change = created ? Artifact::Change::kCreated : Artifact::Change::kModified;
    }
    noted->second.state = state;
    remember(path, state);
}

void ArtifactTracker::remember(const std::string& path, const FileState& state) {
    const auto known = listing_.find(path);
    if (known != listing_.end()) {
        known->second = state;
        return;
    }
    if (listing_.size() >= kListedFilesMax || listing_bytes_ + path.size() > kListedPathBytesMax) {
        listing_complete_ = false;
        return;
    }
    listing_bytes_ += path.size();
    listing_.emplace(path, state);
}

void ArtifactTracker::forget(const std::string& path) {
    if (listing_.erase(path) > 0) {
        listing_bytes_ -= path.size();
    }
}

void ArtifactTracker::forget_below(const std::string& directory, const Changes& changes) {
    // It may be there again, and what is in it was looked at as what appeared.
    const auto state = workspace_.state(directory);
    const bool gone = state.has_error() || state.value().kind != EntryKind::kDirectory;
    const std::string prefix = directory + "/";
    auto at = listing_.lower_bound(prefix);
    while (at != listing_.end() && at->first.starts_with(prefix)) {
        if (gone ||
            (!changes.files.contains(at->first) && workspace_.state(at->first).has_error())) {
            listing_bytes_ -= at->first.size();
            at = listing_.erase(at);
        } else {
            ++at;
        }
    }
}

}  // namespace cellkeep::session
