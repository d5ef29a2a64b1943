// SPDX-License-Identifier: Apache-2.0
//
// What is to be done so that a branch's files get into the session that it was made from: a
// three-way comparison of what both had when the branch was made, and have now. A pure function,
// bounded by what a walk through a workspace sees (sandbox/workspace/workspace_walker.hpp).
#pragma once

#include "kernel-manager/checkpoint/files/manifest.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::checkpoint {

/// Paths that one order may name.
inline constexpr std::size_t kMergePathsMax = 1000;

struct MergeOrder {
    /// Files, or directories with all that is in them; empty: everything.
    std::vector<std::string> paths;
    /// Where both have changed the same, the branch wins.
    bool force = false;
};

/// Both have changed the same since the base.
struct MergeConflict {
    std::string path;
    /// nullopt: it could not be read, or nothing became of it but something in it.
    std::optional<Change> here;
    std::optional<Change> branch;
};

/// What one path is, and shall be.
struct MergeStep {
    std::optional<KeptFile> have;
    std::optional<KeptFile> want;
};

struct MergePlan {
    std::map<std::string, MergeStep> steps;  // by path
    /// By path. Without MergeOrder::force nothing may be done while there is one.
    std::map<std::string, MergeConflict> conflicts;
    std::map<std::string, Unkept> skipped;  // could not be read in the branch, or here
    std::vector<std::string> unmatched;     // of the order: the branch has changed nothing there
    std::shared_ptr<const Manifest> base;   // of the next merge, once this one is done
};

struct MergeSides {
    const Manifest& base;
    const Manifest& ours;    // of the session
    const Manifest& theirs;  // of its branch
};
MergePlan plan_merge(const MergeSides& sides, const MergeOrder& order);

}  // namespace cellkeep::checkpoint
