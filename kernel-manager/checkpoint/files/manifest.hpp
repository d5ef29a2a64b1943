// SPDX-License-Identifier: Apache-2.0
//
// What the files of a workspace were at one moment: a value. Contents are named by their digest;
// the bytes are in a BlobStore.
#pragma once

#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::checkpoint {

/// A file that is longer is not kept.
inline constexpr std::uint64_t kKeptFileBytesMax = 512ULL << 20U;
/// Changes that one comparison names.
inline constexpr std::size_t kFileChangesMax = 1000;

struct KeptFile {
    sandbox::EntryKind kind = sandbox::EntryKind::kFile;
    std::uint32_t mode = 0;     // permissions
    std::int64_t modified = 0;  // nanoseconds since 1970
    std::uint64_t bytes = 0;
    std::string content;  // of a file: SHA-256, 64 digits; of a link: its target

    bool operator==(const KeptFile&) const = default;
};

/// Why something of the workspace is not kept.
enum class Unkept {
    kKind,        // a socket, a device, a fifo
    kFileBytes,   // longer than kKeptFileBytesMax
    kSpace,       // there is no room for its bytes
    kUnreadable,  // the guest itself may not read it
    kChanging     // it was written while it was read
};
/// "kind", "file_bytes", "space", "unreadable", "changing": a name of the wire.
std::string_view to_string(Unkept why);

/// Paths are relative to the workspace.
struct Manifest {
    std::map<std::string, KeptFile> files;  // directories and links too
    std::map<std::string, Unkept> unkept;
    /// False: there may be more than both say.
    bool complete = true;
    std::uint64_t bytes = 0;  // of all files
};

/// Whether all that can be told of both is the same. Times do not count.
bool are_alike(const Manifest& one, const Manifest& other);

struct FileChange {
    enum class What { kCreated, kModified, kDeleted };
    std::string path;
    What what = What::kCreated;
    sandbox::EntryKind kind = sandbox::EntryKind::kFile;  // of the later one, if it is there
    std::uint64_t bytes = 0;                              // of the later one; 0: it is gone
};
/// "created", "modified", "deleted": a name of the wire.
std::string_view to_string(FileChange::What what);

struct FileChanges {
    std::vector<FileChange> list;  // by path
    /// False: more than kFileChangesMax differ, or one of the manifests is not complete or lacks
    /// files.
    bool complete = true;
};
FileChanges compare(const Manifest& earlier, const Manifest& later);

}  // namespace cellkeep::checkpoint
