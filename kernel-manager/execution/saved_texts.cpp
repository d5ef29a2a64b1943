// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/saved_texts.hpp"

#include "protocol/limits.hpp"
#include "sandbox/workspace/workspace_walker.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

/// Nothing is saved where it is unknown.
std::uint64_t workspace_bytes(const sandbox::Workspace& workspace) {
    struct statfs info {};
    if (::fstatfs(workspace.directory_fd(), &info) < 0) {
        return 0;
    }
    return static_cast<std::uint64_t>(info.f_blocks) * static_cast<std::uint64_t>(info.f_bsize);
}

std::string saved_texts_directory(const std::string& execution_id) {
    return std::string(sandbox::kServerDirectory) + "/" + execution_id;
}

std::uint64_t saved_text_room(const sandbox::Workspace& workspace) {
    return std::min(limits::kSavedTextBytesMax, workspace_bytes(workspace) / 4);
}

void SavedTexts::go_on(std::deque<Saved> saved) {
    saved_ = std::move(saved);
    bytes_ = 0;
    for (const Saved& one : saved_) {
        bytes_ += one.bytes;
    }
}

void SavedTexts::keep(const ExecutionResult& result, const sandbox::Workspace& workspace) {
    Saved saved{saved_texts_directory(result.id), 0};
    for (const auto& [stream, cut] : result.truncated) {
        saved.bytes += cut.saved_to.empty() ? 0 : cut.total;
    }
    if (saved.bytes == 0) {
        return;
    }
    bytes_ += saved.bytes;
    saved_.push_back(std::move(saved));
    const std::uint64_t most =
        std::min(limits::kSavedTextsBytesMax, workspace_bytes(workspace) / 2);
    // The newest stays: its answer is on the way.
    while (saved_.size() > 1 && (saved_.size() > limits::kSavedTextsMax || bytes_ > most)) {
        // Our own files alone, one call each: what the guest put beside them is its own, and may be
        // any number. Ignored: it may have removed them, or made them into something else.
        const std::string& directory = saved_.front().directory;
        for (const std::string& own : {directory + "/stdout.txt", directory + "/stderr.txt"}) {
            (void)workspace.remove(own).has_value();
        }
        (void)workspace.remove(directory).has_value();
        bytes_ -= saved_.front().bytes;
        saved_.pop_front();
    }
}

}  // namespace cellkeep::session
