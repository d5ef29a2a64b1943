// SPDX-License-Identifier: Apache-2.0
//
// The server's hands in a session's /workspace. The guest owns that tree and may swap any name for
// a link, a fifo or a device at any time, so every path is opened beneath the workspace descriptor
// with openat2(2) RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
// only regular files are read or written, and nothing here can block on what the guest does. Files
// made here belong to the guest (setfsuid(2) around the open: a tmpfs of another user namespace
// refuses root).
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::sandbox {

class Sandbox;

/// A path of a file in the workspace: relative, no "." or ".." or empty component, no NUL, each
/// component at most 255 bytes, the whole at most 4095. "" names the workspace itself.
Result<std::string> parse_workspace_path(std::string_view text);

/// kLink only in FileState: an Entry's link is kOther.
enum class EntryKind { kFile, kDirectory, kLink, kOther };

struct Entry {
    std::string path;  // relative to the workspace
    EntryKind kind = EntryKind::kFile;
    std::uint64_t bytes = 0;
    std::chrono::system_clock::time_point modified;
};

/// What tells one version of a file from another. Times in nanoseconds since 1970; `changed` cannot
/// be set by the guest (inode(7), ctime).
struct FileState {
    EntryKind kind = EntryKind::kOther;
    std::uint32_t mode = 0;  // permissions
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t modified = 0;
    std::int64_t changed = 0;

    bool operator==(const FileState&) const = default;
};

/// From what stat(2) and its kin say.
FileState file_state(const struct stat& info);
Entry entry_of(const std::string& path, const struct stat& info);

/// What the name of an upload on its way begins with.
inline constexpr std::string_view kUploadPrefix = ".cellkeep-upload-";

/// How many entries a directory may have to be listed, uploads on their way included.
inline constexpr std::size_t kListEntriesMax = 10'000;

/// A view: valid while the Sandbox it was made for is. Paths are parse_workspace_path's.
class Workspace {
 public:
    explicit Workspace(const Sandbox& sandbox);
    /// For tests and for other isolation backends: an O_PATH directory and the owner of new files.
    Workspace(int directory_fd, uid_t file_uid, gid_t file_gid);

    /// A regular file for reading. kNotFound; kInvalidArgument if it is not a regular file or a
    /// symbolic link is in the way. bytes is the size at this moment.
    struct OpenedFile {
        UniqueFd fd;
        std::uint64_t bytes = 0;
        std::chrono::system_clock::time_point modified;
        FileState state;
    };
    Result<OpenedFile> open_for_reading(const std::string& path) const;

    /// Writes path whole, making missing directories, through a temporary file and rename, so that
    /// a reader sees the old or the new contents. kLimitExceeded when the workspace is full.
    Status write_file(const std::string& path, std::string_view bytes) const;

    /// Makes a directory and every missing one on the way; one that is there already is fine.
    Status make_directory(const std::string& path) const;

    /// A file being written piece by piece; commit() puts it in place, the destructor of an
    /// uncommitted one removes it.
    class Upload {
     public:
        Upload(Upload&& other) noexcept;
        Upload& operator=(Upload&&) = delete;
        Upload(const Upload&) = delete;
        Upload& operator=(const Upload&) = delete;
        ~Upload();
        Status append(std::string_view bytes);
        Status commit();

     private:
        friend class Workspace;
        Upload(
            const Workspace& workspace,
            UniqueFd directory,
            UniqueFd file,
            std::string temporary,
            std::string name);
        Workspace const* workspace_;
        UniqueFd directory_;
        UniqueFd file_;
        std::string temporary_;
        std::string name_;
    };
    Result<Upload> begin_upload(const std::string& path) const;

    /// A directory's entries, not recursive, sorted by path; kLimitExceeded beyond kListEntriesMax.
    Result<std::vector<Entry>> list(const std::string& path) const;
    /// The entry at path (not following links).
    Result<Entry> stat(const std::string& path) const;
    /// As stat(), for callers that compare versions.
    Result<FileState> state(const std::string& path) const;
    /// Where a symbolic link says it leads: the guest's text, at most 4095 bytes.
    Result<std::string> read_link(const std::string& path) const;
    /// A directory for reading its entries; what they are must be asked of this descriptor without
    /// following links.
    Result<UniqueFd> open_directory(const std::string& path) const;
    /// Removes a file or an empty directory. kPermissionDenied if something is mounted there.
    Status remove(const std::string& path) const;

    int directory_fd() const { return directory_fd_; }
    uid_t file_uid() const { return file_uid_; }
    gid_t file_gid() const { return file_gid_; }

 private:
    int directory_fd_;
    uid_t file_uid_;
    gid_t file_gid_;
};

}  // namespace cellkeep::sandbox
