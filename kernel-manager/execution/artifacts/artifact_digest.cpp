// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/artifacts/artifact_digest.hpp"

#include "kernel-manager/execution/artifacts/media_type.hpp"
#include "protocol/limits.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cellkeep::session {

namespace {

constexpr std::size_t kDigestReadBytes = 256ULL << 10U;
constexpr std::size_t kSha256Digits = 64;

}  // namespace

Artifacts list_artifacts(const ArtifactTracker::Changes& changes) {
    Artifacts artifacts;
    artifacts.complete = changes.complete && changes.files.size() <= limits::kArtifactsMax;
    for (const auto& [path, change] : changes.files) {
        if (artifacts.files.size() >= limits::kArtifactsMax) {
            break;
        }
        artifacts.bytes += change.state.bytes;
        artifacts.files.push_back(
            {path, change.change, change.state.bytes, {}, std::string(media_type_of(path))});
    }
    return artifacts;
}

void add_artifacts(Artifacts artifacts, ExecutionResult& result) {
    for (const Artifact& artifact : artifacts.files) {
        result.retained_bytes += sizeof(Artifact) + artifact.path.size() + kSha256Digits;
    }
    if (artifacts.hashed_bytes < artifacts.bytes) {
        result.truncated["artifacts"] = {artifacts.hashed_bytes, artifacts.bytes, "", ""};
    }
    result.artifacts = std::move(artifacts.files);
    result.artifacts_complete = artifacts.complete;
}

ArtifactDigest::ArtifactDigest(
    UniqueFd workspace_fd,
    uid_t file_uid,
    gid_t file_gid,
    Artifacts artifacts,
    std::uint64_t bytes_max,
    std::chrono::steady_clock::time_point deadline)
    : workspace_fd_(std::move(workspace_fd)),
      workspace_(workspace_fd_.get(), file_uid, file_gid),
      artifacts_(std::move(artifacts)),
      bytes_left_(bytes_max),
      deadline_(deadline) {}

/// False at the end.
bool ArtifactDigest::open_next() {
    for (; next_ < artifacts_.files.size(); ++next_) {
        Artifact& artifact = artifacts_.files[next_];
        if (artifact.bytes > bytes_left_) {
            continue;
        }
        auto opened = workspace_.open_for_reading(artifact.path);
        if (opened.has_error()) {
            continue;  // gone, or replaced by what is not a plain file
        }
        // What it is now: that is what the digest will be of.
        artifacts_.bytes += opened.value().bytes;
        artifacts_.bytes -= artifact.bytes;
        artifact.bytes = opened.value().bytes;
        if (artifact.bytes > bytes_left_) {
            continue;
        }
        open_ = std::move(opened).value();
        hash_.emplace();
        read_ = 0;
        return true;
    }
    return false;
}

void ArtifactDigest::close_current(bool whole) {
    Artifact& artifact = artifacts_.files[next_];
    bytes_left_ -= std::min(read_, bytes_left_);
    struct stat after {};
    if (whole && ::fstat(open_->fd.get(), &after) == 0 &&
        sandbox::file_state(after) == open_->state) {
        artifact.sha256 = hash_->finish();
        artifacts_.hashed_bytes += artifact.bytes;
    }
    open_.reset();
    hash_.reset();
    ++next_;
}

WorkThread::Slice ArtifactDigest::advance() {
    buffer_.resize(kDigestReadBytes);
    std::size_t left = kSliceBytes;
    while (left > 0) {
        if (std::chrono::steady_clock::now() >= deadline_) {
            return WorkThread::Slice::kDone;
        }
        if (!open_ && !open_next()) {
            return WorkThread::Slice::kDone;
        }
        const auto wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(open_->bytes - read_, buffer_.size()));
        const ssize_t got =
            ::pread(open_->fd.get(), buffer_.data(), wanted, static_cast<off_t>(read_));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got > 0) {
            hash_->update({buffer_.data(), static_cast<std::size_t>(got)});
            read_ += static_cast<std::uint64_t>(got);
            left -= std::min(left, static_cast<std::size_t>(got));
        }
        if (got <= 0 || read_ == open_->bytes) {
            close_current(read_ == open_->bytes);
        }
    }
    return WorkThread::Slice::kMore;
}

}  // namespace cellkeep::session
