// SPDX-License-Identifier: Apache-2.0
//
// Reads changed files and says what they are: the job that a work thread does for one execution. It
// owns a descriptor of the workspace and opens each file beneath it, once; the guest may change
// everything meanwhile, and what changed while it was read has no digest. Bounded by bytes and
// time. One thread at a time.
#pragma once

#include "kernel-manager/execution/artifacts/artifact_tracker.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

/// What one execution left.
struct Artifacts {
    std::vector<Artifact> files;  // by path
    bool complete = true;
    std::uint64_t bytes = 0;         // of all of them
    std::uint64_t hashed_bytes = 0;  // of those with a digest
};

/// Puts them into an execution's result.
void add_artifacts(Artifacts artifacts, ExecutionResult& result);

/// The files as they are listed, without digests: at most limits::kArtifactsMax.
Artifacts list_artifacts(const ArtifactTracker::Changes& changes);

class ArtifactDigest {
 public:
    /// Files that do not fit into what is left of bytes_max get no digest; nor does what is not
    /// read by the deadline.
    ArtifactDigest(
        UniqueFd workspace_fd,
        uid_t file_uid,
        gid_t file_gid,
        Artifacts artifacts,
        std::uint64_t bytes_max,
        std::chrono::steady_clock::time_point deadline);

    /// Reads up to kSliceBytes.
    WorkThread::Slice advance();
    /// When advance() said kDone.
    Artifacts take() { return std::move(artifacts_); }

    static constexpr std::size_t kSliceBytes = 4ULL << 20U;

 private:
    bool open_next();
    void close_current(bool whole);

    UniqueFd workspace_fd_;
    sandbox::Workspace workspace_;
    Artifacts artifacts_;
    std::uint64_t bytes_left_;
    std::chrono::steady_clock::time_point deadline_;
    std::size_t next_ = 0;  // of artifacts_.files
    std::optional<sandbox::Workspace::OpenedFile> open_;
    std::optional<protocol::Sha256> hash_;
    std::uint64_t read_ = 0;
    std::string buffer_;
};

}  // namespace cellkeep::session
