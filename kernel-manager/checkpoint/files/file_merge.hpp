// SPDX-License-Identifier: Apache-2.0
//
// Takes a branch's files into the session that it was made from: the job of a work thread. Nothing
// is touched while both have changed the same. All or nothing: after a failure, or when the guest
// has changed one of the files meanwhile, what was done is undone; what cannot be undone is named.
// Each name is opened beneath the workspace, never through a link. A file gets its contents by a
// rename, so programs that have the old one open or mapped keep it. One thread at a time.
#pragma once

#include "kernel-manager/checkpoint/files/file_versions.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "kernel-manager/checkpoint/files/merge_plan.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::checkpoint {

/// Changes, conflicts, skipped files and failures, each, of which one answer has the names.
inline constexpr std::size_t kMergeNamedMax = 1000;

/// What came of it.
struct MergeAnswer {
    enum class Outcome {
        kDone,
        kConflicts,   // nothing was done
        kIncomplete,  // nothing was done: a workspace has more than can be compared
        kUndone,      // something failed, and all is as it was
        kPartly       // something failed, and `left` is neither as it was nor as it should be
    };
    struct Failure {
        std::string path;
        std::string why;
    };
    struct Skipped {
        std::string path;
        Unkept why = Unkept::kKind;
    };
    Outcome outcome = Outcome::kDone;
    std::vector<FileChange> changes;  // that were made; by path
    std::size_t change_count = 0;
    std::vector<MergeConflict> conflicts;  // with MergeOrder::force: that the branch has won
    std::size_t conflict_count = 0;
    std::vector<Skipped> skipped;
    std::size_t skipped_count = 0;
    std::vector<std::string> unmatched;  // see MergePlan
    std::optional<Failure> failure;      // with kUndone and kPartly: the first
    std::vector<Failure> left;           // with kPartly
    std::size_t left_count = 0;
    std::shared_ptr<const Manifest> base;  // with kDone: of the next merge
};

class FileMerge {
 public:
    static constexpr std::size_t kSliceBytes = 4ULL << 20U;
    static constexpr std::size_t kSliceEntries = 256;

    using Files = std::shared_ptr<const Manifest>;
    struct Sides {
        std::shared_ptr<FileVersions> versions;  // of the session
        Files ours;                              // its files, now
        std::shared_ptr<FileVersions> source;    // of the branch
        Files theirs;
        Files base;
    };
    /// The contents of both must be held meanwhile.
    FileMerge(Sides sides, MergeOrder order) : sides_(std::move(sides)), order_(std::move(order)) {}
    FileMerge(const FileMerge&) = delete;
    FileMerge& operator=(const FileMerge&) = delete;
    ~FileMerge() = default;

    /// False: it is done.
    bool advance();
    /// When advance() said so.
    MergeAnswer take() { return std::move(answer_); }

 private:
    enum class Phase { kPlan, kRemove, kMake, kSettle, kDone };
    struct Entry {
        const std::string* path;
        const MergeStep* step;
        bool touched = false;
    };

    void step();
    void plan();
    void begin(Phase phase);
    void remove_next();
    void make_next();
    Status make_directory(const Entry& entry, const KeptFile& directory, bool is_there) const;
    void make_file(Entry& entry, const KeptFile& file);
    void write_on();
    void settle_next();
    /// What it becomes, now.
    const std::optional<KeptFile>& target(const Entry& entry) const {
        return undoing_ ? entry.step->have : entry.step->want;
    }
    Status verify(const Entry& entry, const std::optional<KeptFile>& expected) const;
    void fail(const Entry& entry, const Error& error);
    void finish();

    Sides sides_;
    MergeOrder order_;
    Phase phase_ = Phase::kPlan;
    MergePlan plan_;
    std::vector<Entry> entries_;  // by path
    std::size_t at_ = 0;          // of them
    bool undoing_ = false;
    struct Writing {
        sandbox::Workspace::Upload file;
        std::uint64_t written = 0;
    };
    std::optional<Writing> writing_;  // of the one before at_
    std::string buffer_;
    std::size_t slice_bytes_ = 0;
    MergeAnswer answer_;
};

}  // namespace cellkeep::checkpoint
