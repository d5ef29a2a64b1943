// SPDX-License-Identifier: Apache-2.0
//
// Keeps the files of a workspace as they are: the job of a work thread. It opens each file beneath
// the workspace, once; a file is read only if it has changed since it was read before. The guest
// may change everything meanwhile: what changed while it was read is read again, and then named.
// The walk is bounded by sandbox/workspace/workspace_walker.hpp. One thread at a time.
#pragma once

#include "kernel-manager/checkpoint/files/file_versions.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"
#include "sandbox/workspace/workspace_walker.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::checkpoint {

/// How often a file that changes while it is read is read.
inline constexpr int kReadsMax = 3;

class FileCapture {
 public:
    enum class Step {
        kMore,
        kDone,
        /// There is no room for the next file: drop a manifest and go on, or pass_over() it.
        kNoSpace
    };
    /// Bytes that are read and entries that are looked at in one advance().
    static constexpr std::size_t kSliceBytes = 4ULL << 20U;
    static constexpr std::size_t kSliceEntries = 512;

    explicit FileCapture(std::shared_ptr<FileVersions> versions);
    FileCapture(const FileCapture&) = delete;
    FileCapture& operator=(const FileCapture&) = delete;
    ~FileCapture() = default;

    /// kUnavailable: the host has no room, or its disk failed.
    Result<Step> advance();
    /// The file that there is no room for is not kept.
    void pass_over();
    /// When advance() said kDone. Its contents are held until FileVersions::drop().
    Manifest take() { return std::move(manifest_); }
    /// Instead of take(): nothing is held.
    void give_up();

 private:
    struct Reading {
        std::string path;
        sandbox::Workspace::OpenedFile file;
        protocol::Sha256 hash;
        std::uint64_t read = 0;
    };
    Result<Step> look_at_next();
    Result<Step> open();
    Result<Step> read_on();
    Result<Step> close();
    Result<Step> leave(Unkept why);
    void keep(const sandbox::FileState& state, std::string content);

    std::shared_ptr<FileVersions> versions_;
    sandbox::WorkspaceWalker walker_;
    Manifest manifest_;
    std::optional<std::string> path_;  // of a file that is to be read
    int reads_ = 0;                    // of that file
    std::optional<Reading> reading_;
    std::string buffer_;
    std::size_t slice_bytes_ = 0;
};

}  // namespace cellkeep::checkpoint
