// SPDX-License-Identifier: Apache-2.0
//
// A directory of a workspace, read a few entries at a time, so that the caller can do other work in
// between. Owns its descriptor: it may outlive the workspace. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <dirent.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

class DirectoryListing {
 public:
    /// Errors are those of Workspace::list().
    static Result<DirectoryListing> open(const Workspace& workspace, const std::string& path);
    DirectoryListing(DirectoryListing&&) noexcept = default;
    DirectoryListing& operator=(DirectoryListing&&) noexcept = default;
    DirectoryListing(const DirectoryListing&) = delete;
    DirectoryListing& operator=(const DirectoryListing&) = delete;
    ~DirectoryListing() = default;

    /// Reads this many entries more: whether there may be others. kLimitExceeded beyond
    /// kListEntriesMax.
    Result<bool> read_some(std::size_t entries);
    /// What was read, sorted by path. Once.
    std::vector<Entry> take();

 private:
    using Stream = std::unique_ptr<DIR, int (*)(DIR*)>;
    DirectoryListing(Stream stream, const Workspace& workspace, std::string path);
    Result<bool> read_one();

    Stream stream_;
    uid_t uid_;
    gid_t gid_;
    std::string path_;
    std::vector<Entry> entries_;
    std::size_t seen_ = 0;
};

}  // namespace cellkeep::sandbox
