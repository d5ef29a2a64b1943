// SPDX-License-Identifier: Apache-2.0
//
// One session's workspace as its checkpoints see it: the descriptor through which it is read and
// written, the contents that are kept, and what is known of the files that are there. One thread at
// a time.
#pragma once

#include "kernel-manager/checkpoint/files/blob_store.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace cellkeep::checkpoint {

/// The clock that stamps files moves in ticks of up to 10 ms. What was stamped a shorter time ago
/// may be written again without another stamp.
inline constexpr std::int64_t kSettledNanoseconds = 50'000'000;

/// By the clock that stamps files: nanoseconds since 1970.
std::int64_t stamp_now();

class FileVersions {
 public:
    using Clock = std::int64_t (*)();

    /// Paths in ignored are neither kept nor touched: they are no files of the guest's.
    FileVersions(
        UniqueFd directory,
        uid_t file_uid,
        gid_t file_gid,
        std::shared_ptr<BlobSpace> space,
        std::set<std::string> ignored = {},
        Clock clock = stamp_now)
        : directory_(std::move(directory)),
          workspace_(directory_.get(), file_uid, file_gid),
          blobs_(std::move(space)),
          ignored_(std::move(ignored)),
          clock_(clock) {}
    FileVersions(const FileVersions&) = delete;
    FileVersions& operator=(const FileVersions&) = delete;
    ~FileVersions() = default;

    const sandbox::Workspace& workspace() const { return workspace_; }
    BlobStore& blobs() { return blobs_; }
    bool ignores(const std::string& path) const { return ignored_.contains(path); }

    /// The digest of a file that is as it was when it was read; null: it must be read. Valid until
    /// the next change.
    const std::string* find(const std::string& path, const sandbox::FileState& state) const;
    /// Its contents, read or written now.
    void note(const std::string& path, const sandbox::FileState& state, std::string digest);
    /// Only what was noted since start_over() is known from now on.
    void start_over() { known_ = std::exchange(noted_, {}); }
    void forget(const std::string& path) {
        known_.erase(path);
        noted_.erase(path);
    }

    /// Its contents may go.
    void drop(const Manifest& manifest);
    /// They stay until drop(). kProtocol: some are not here, or are not what it says.
    Status hold(const Manifest& manifest);

 private:
    struct Known {
        sandbox::FileState state;
        std::string digest;
    };
    UniqueFd directory_;
    sandbox::Workspace workspace_;
    BlobStore blobs_;
    std::set<std::string> ignored_;
    Clock clock_;
    std::map<std::string, Known> known_;  // of the walk before
    std::map<std::string, Known> noted_;  // of this one
};

}  // namespace cellkeep::checkpoint
