// SPDX-License-Identifier: Apache-2.0
//
// Which files of a workspace were made or changed between two moments. It remembers a listing and
// learns from a watch which names to look at again; without a watch (the host has none to give, too
// many directories) or after too much at once it looks at everything, within the bounds of
// sandbox/workspace/workspace_walker.hpp. Never reads a file, never follows a link. One thread.
#pragma once

#include "kernel-manager/execution/artifacts/workspace_watch.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

/// The directory at the workspace's root that holds packages which a session has installed: no
/// execution's files, and more directories than can be watched.
inline constexpr std::string_view kPackagesDirectory = ".cellkeep-packages";

/// Files that the listing remembers, and the bytes of their paths.
inline constexpr std::size_t kListedFilesMax = 20'000;
inline constexpr std::size_t kListedPathBytesMax = 4ULL << 20U;
/// Files whose states pass to another program. Of an execution with more, the answer then says that
/// there may be more artifacts.
inline constexpr std::size_t kPassedListingMax = 4096;
/// Names that are looked at one by one; more, and looking at everything is cheaper.
inline constexpr std::size_t kFollowedNamesMax = 2048;
/// After a look at everything that took more processor time than this, there is none for kLookRest
/// times as long: what a guest piles up may cost the server this share of its time and no more.
inline constexpr std::chrono::microseconds kLookFree{2'000};
inline constexpr int kLookRest = 20;

class ArtifactTracker {
 public:
    enum class Watching { kIfPossible, kNever };

    /// The workspace's descriptor must stay open. `close` gets the descriptors that may take long
    /// to close.
    ArtifactTracker(
        const sandbox::Workspace& workspace,
        std::function<void(UniqueFd)> close,
        Watching watching = Watching::kIfPossible);
    ArtifactTracker(const ArtifactTracker&) = delete;
    ArtifactTracker& operator=(const ArtifactTracker&) = delete;
    ~ArtifactTracker();

    /// What changed until now belongs to no execution.
    void begin();

    struct Change {
        Artifact::Change change = Artifact::Change::kCreated;
        sandbox::FileState state;
    };
    struct Changes {
        std::map<std::string, Change> files;  // by path
        /// False: there may be more.
        bool complete = true;
    };
    /// Plain files that are there and were made or changed since begin().
    Changes take();

    /// For another program in this process, and from one: what was known when the execution began.
    /// A program that goes on looks at everything once. Of a file that was rewritten with the same
    /// size in the very tick in which it was looked at before, only a watch would have told.
    struct Passed {
        std::map<std::string, sandbox::FileState> listing;
        bool complete = false;  // the listing, which is empty if it is too long to pass
        std::int64_t begun_at = 0;
    };
    Passed pass_on();
    void go_on(Passed passed);
    /// About what pass_on() passes.
    std::size_t passed_bytes() const;

    bool watching() const { return watch_.has_value(); }
    /// Has something to be read if a file has changed since begin(). -1: only take() tells.
    int watch_fd() const { return watch_.has_value() && listing_complete_ ? watch_->fd() : -1; }
    /// watch_fd() has been looked at, and had nothing: the next take() goes without a look. Without
    /// a watch it says nothing.
    void note_unchanged() { unchanged_ = watch_fd() >= 0; }

 private:
    void update(Changes& changes);
    void look_at_everything(Changes& changes);
    void look_below(const std::string& path, Changes& changes, bool rebuild);
    void follow(const WorkspaceWatch::Notes& notes, Changes& changes);
    /// What a note of the watch says of a file.
    enum class Evidence { kWritten, kClosed };
    void look_at(const std::string& path, Evidence evidence, Changes& changes);
    void compare(const std::string& path, const sandbox::FileState& state, Changes& changes);
    void remember(const std::string& path, const sandbox::FileState& state);
    void forget(const std::string& path);
    void forget_below(const std::string& directory, const Changes& changes);
    void stop_watching();

    sandbox::Workspace workspace_;
    std::function<void(UniqueFd)> close_;
    Watching wanted_;
    std::optional<WorkspaceWatch> watch_;
    std::size_t directories_ = 0;  // seen by the last look at everything
    std::map<std::string, sandbox::FileState> listing_;
    std::size_t listing_bytes_ = 0;
    bool listing_complete_ = true;
    std::chrono::steady_clock::time_point next_look_;
    bool started_ = false;
    bool unchanged_ = false;     // since begin()
    std::int64_t begun_at_ = 0;  // by the clock that stamps files
};

}  // namespace cellkeep::session
