// SPDX-License-Identifier: Apache-2.0
//
// The whole texts that were too long for their answers, as files in the workspace: keeps those of
// the newest executions and removes the rest, so that what is saved for the guest never fills its
// workspace. One thread.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace cellkeep::session {

/// The directory of one execution's saved texts.
std::string saved_texts_directory(const std::string& execution_id);

/// What a workspace may have in all; 0 if that is unknown.
std::uint64_t workspace_bytes(const sandbox::Workspace& workspace);

/// What one text may take of a workspace: limits::kSavedTextBytesMax, or a quarter of all.
std::uint64_t saved_text_room(const sandbox::Workspace& workspace);

class SavedTexts {
 public:
    /// An execution has ended. Removes the oldest beyond limits::kSavedTextsMax and
    /// kSavedTextsBytesMax, or half the workspace.
    void keep(const ExecutionResult& result, const sandbox::Workspace& workspace);

    std::size_t size() const { return saved_.size(); }

    struct Saved {
        std::string directory;
        std::uint64_t bytes = 0;
    };
    /// Oldest first: for another program in this process, and from one.
    const std::deque<Saved>& all() const { return saved_; }
    void go_on(std::deque<Saved> saved);

 private:
    std::deque<Saved> saved_;  // oldest first
    std::uint64_t bytes_ = 0;
};

}  // namespace cellkeep::session
