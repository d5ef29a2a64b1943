// SPDX-License-Identifier: Apache-2.0
//
// The files of packages as a session will see them: /usr with what other packages put there, and
// what it may have of /etc and /opt. Written from archives entry by entry, each path beneath the
// tree's own directory whatever links lie on the way (openat2(2)). Blocks: not for the event loop.
#pragma once

#include "kernel-manager/environments/debian/tar_reader.hpp"
#include "kernel-manager/image/manifest.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::environments {

/// Folders and files directly in /etc and /opt together: each is a mount of every session.
inline constexpr std::size_t kSystemFoldersMax = 64;
/// Files, folders and links of all packages together, each as often as it is made: an empty one has
/// no bytes, and takes an inode and its time. No image can hold more.
inline constexpr std::size_t kSystemEntriesMax = image::kImageEntriesMax;

/// Where a package's path is in the tree: /bin, /sbin, /lib… are beneath /usr. "" if sessions have
/// no place for it: outside of /usr, /etc and /opt; what the sandbox itself makes in /etc, or only
/// a system that starts would read; documentation. Pure.
std::string place_in_system(std::string_view path);

class SystemTree {
 public:
    /// Makes the directory, for this user alone.
    static Result<SystemTree> create(
        const std::string& directory,
        std::uint64_t bytes_max,
        std::size_t entries_max = kSystemEntriesMax);

    /// Writes what has a place: files, folders and links. Devices and what only root may read are
    /// left out, and so are set-user-ID bits. Of two packages with one file the later one's counts.
    /// kLimitExceeded beyond bytes_max of all files together, and beyond entries_max; kProtocol for
    /// an entry that cannot be there, as a file beneath a file.
    Status add(int archive, const std::vector<TarEntry>& entries);

    /// A link at an absolute path of a session, unless something is there.
    Status add_link(const std::string& path, const std::string& to);
    /// Whether the absolute path of a session is there, at the end of its links.
    bool holds(const std::string& path) const;
    /// A small file of the tree; kNotFound.
    Result<std::string> read(const std::string& path, std::size_t bytes_max) const;
    /// Names directly in a folder of the tree, sorted; none if it is not there.
    std::vector<std::string> names_in(const std::string& folder) const;

    std::uint64_t bytes() const { return bytes_; }

 private:
    SystemTree(UniqueFd root, std::uint64_t bytes_max, std::size_t entries_max)
        : root_(std::move(root)), bytes_max_(bytes_max), entries_max_(entries_max) {}
    Status count_entry();
    Result<UniqueFd> open_beneath(const std::string& path, int flags) const;
    /// The folder, made if it is missing.
    Result<UniqueFd> make_folders(const std::string& path);
    Status add_one(int archive, const TarEntry& entry);
    Status add_file(int archive, const TarEntry& entry, int folder, const std::string& name);
    Status add_same(const TarEntry& entry, int folder, const std::string& name);

    UniqueFd root_;
    std::uint64_t bytes_max_;
    std::uint64_t bytes_ = 0;
    std::size_t entries_max_;
    std::size_t entries_ = 0;
};

}  // namespace cellkeep::environments
