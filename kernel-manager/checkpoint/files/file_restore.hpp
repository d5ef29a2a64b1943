// SPDX-License-Identifier: Apache-2.0
//
// Makes the files of a workspace what they were: writes back what differs, and removes what was not
// there. The job of a work thread. The guest may change everything meanwhile: each name is opened
// beneath the workspace, never through a link, and what cannot be done is named and leaves the rest
// to be done. One thread at a time.
#pragma once

#include "kernel-manager/checkpoint/files/file_versions.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"
#include "sandbox/workspace/workspace_rewrite.hpp"
#include "sandbox/workspace/workspace_walker.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::checkpoint {

/// Files that could not be put back, of which one answer has the names.
inline constexpr std::size_t kFailuresNamedMax = 16;

/// What was done.
struct Restored {
    std::size_t written = 0;  // files, directories and links
    std::size_t removed = 0;
    std::size_t failed = 0;
    struct Failure {
        std::string path;
        std::string why;
    };
    std::vector<Failure> failures;  // the first kFailuresNamedMax
};

class FileRestore {
 public:
    static constexpr std::size_t kSliceBytes = 4ULL << 20U;
    static constexpr std::size_t kSliceEntries = 256;

    /// left: what the caller has kept of the present state; what it could not keep is not removed.
    /// Null: nothing is kept. target's contents must be held meanwhile: by source, or by versions
    /// if that is null.
    FileRestore(
        std::shared_ptr<FileVersions> versions,
        std::shared_ptr<const Manifest> target,
        std::shared_ptr<const Manifest> left,
        std::shared_ptr<FileVersions> source = nullptr);
    FileRestore(const FileRestore&) = delete;
    FileRestore& operator=(const FileRestore&) = delete;
    ~FileRestore() = default;

    /// False: it is done.
    bool advance();
    /// When advance() said so.
    Restored take() { return std::move(restored_); }

 private:
    enum class Phase { kLook, kRemove, kDirectories, kContents, kAttributes, kDone };
    using Files = std::map<std::string, KeptFile>;

    void step();
    void look();
    void begin(Phase phase);
    void remove_next();
    void make_next_directory();
    void restore_next();
    void restore_file(const std::string& path, const KeptFile& file);
    void restore_link(const std::string& path, const KeptFile& file);
    void write_on();
    void settle_next_directory();
    bool stays(const std::string& path) const;
    bool is_spared(const std::string& path) const;
    bool succeeded(const Status& done, const std::string& path);

    std::shared_ptr<FileVersions> versions_;
    std::shared_ptr<const Manifest> target_;
    std::shared_ptr<const Manifest> left_;
    std::shared_ptr<FileVersions> source_;  // never null
    sandbox::WorkspaceWalker walker_;
    Phase phase_ = Phase::kLook;
    std::map<std::string, sandbox::FileState> present_;
    std::map<std::string, sandbox::FileState>::const_reverse_iterator to_remove_;
    Files::const_iterator next_;
    Files::const_reverse_iterator to_settle_;
    struct Writing {
        sandbox::Rewriting file;
        std::uint64_t written = 0;
    };
    std::optional<Writing> writing_;  // of next_
    std::string buffer_;
    std::size_t slice_bytes_ = 0;
    Restored restored_;
};

}  // namespace cellkeep::checkpoint
