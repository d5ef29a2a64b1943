// SPDX-License-Identifier: Apache-2.0
//
// What the files of a workspace were at one moment: a value. Contents are named by their digest;
// the bytes are in a BlobStore.
#pragma once

#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::checkpoint {

/// A file that is longer is not kept.
inline constexpr std::uint64_t kKeptFileBytesMax = 512ULL << 20U;
/// Changes that one page of a comparison names.
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

/// Whether there was no room for something of it.
bool lacks_space(const Manifest& manifest);

/// Whether all that can be told of both is the same. Times do not count.
bool are_alike(const KeptFile& one, const KeptFile& other);
bool are_alike(const Manifest& one, const Manifest& other);

/// How a file became another one, or came or went.
enum class Change {
    kCreated,
    kModified,
    kMode,  // only its permissions are others
    kDeleted
};
/// "created", "modified", "mode", "deleted": a name of the wire.
std::string_view to_string(Change change);
/// Null: it is not there. nullopt: nothing became of it.
std::optional<Change> find_change(const KeptFile* earlier, const KeptFile* later);

struct FileChange {
    struct Facts {
        sandbox::EntryKind kind = sandbox::EntryKind::kFile;
        std::uint32_t mode = 0;
        std::uint64_t bytes = 0;
    };
    std::string path;
    Change what = Change::kCreated;
    std::optional<Facts> before;  // nullopt: it was not there
    std::optional<Facts> after;   // nullopt: it is gone
};
/// Precondition: one of them is there, and they are not alike.
FileChange describe_change(const std::string& path, const KeptFile* earlier, const KeptFile* later);

/// One page of a comparison.
struct ChangesPage {
    std::string after;  // the last path of the page before; empty: from the start
    std::size_t limit = kFileChangesMax;
};
struct FileChanges {
    std::vector<FileChange> list;  // by path
    bool more = false;             // behind the last of the list
    /// False: one of the manifests is not complete or lacks files.
    bool complete = true;
};
FileChanges compare(const Manifest& earlier, const Manifest& later, const ChangesPage& page = {});

}  // namespace cellkeep::checkpoint
