// SPDX-License-Identifier: Apache-2.0
//
// Puts files of a workspace back as they were: contents, links, permissions and times. As the guest
// could, never through a link, never outside, and never blocking. Paths are parse_workspace_path's.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::sandbox {

/// Permissions, and when it was written last: nanoseconds since 1970.
struct FileAttributes {
    std::uint32_t mode = 0;
    std::int64_t modified = 0;
};

/// A regular file whose contents are written anew. One that is there and has one name keeps its
/// inode, so that programs that have it open see what was put back; any other is replaced. Blocks
/// of zeros become holes. The workspace's descriptor must stay open.
class Rewriting {
 public:
    /// The directory that it is in must be there.
    static Result<Rewriting> begin(const Workspace& workspace, const std::string& path);
    Rewriting(Rewriting&& other) noexcept;
    Rewriting& operator=(Rewriting&&) = delete;
    Rewriting(const Rewriting&) = delete;
    Rewriting& operator=(const Rewriting&) = delete;
    /// Removes a new file that was not finished; one that was there is then as far as it was
    /// written.
    ~Rewriting();

    /// kLimitExceeded: the workspace is full.
    Status append(std::string_view bytes);
    /// What it is now.
    Result<FileState> finish(const FileAttributes& attributes);

 private:
    Rewriting(const Workspace& workspace, UniqueFd directory, UniqueFd file, std::string name)
        : workspace_(&workspace),
          directory_(std::move(directory)),
          file_(std::move(file)),
          name_(std::move(name)) {}

    const Workspace* workspace_;
    UniqueFd directory_;
    UniqueFd file_;
    std::string name_;
    std::string temporary_;  // empty: it is written in its place
    std::uint64_t written_ = 0;
};

/// A symbolic link with the guest's text. kConflict: something is there.
Status make_link(const Workspace& workspace, const std::string& path, const std::string& target);

/// Of a file or a directory. kInvalidArgument if it is of another kind.
Status set_attributes(
    const Workspace& workspace,
    const std::string& path,
    EntryKind kind,
    const FileAttributes& attributes);

}  // namespace cellkeep::sandbox
