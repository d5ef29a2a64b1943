// SPDX-License-Identifier: Apache-2.0
//
// Copies host files into a directory of the server's own and notes what it copied. Never follows a
// link inside that directory, never copies what others may not read on the host, nor sockets,
// devices and pipes; owner, set-id bits and extended attributes stay behind. What an interrupted
// writer has copied into the same directory is kept: files that are complete are read, not written
// again.
#pragma once

#include "kernel-manager/image/manifest.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/stat.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::image {

class TreeWriter {
 public:
    /// The directory must exist and be used by no one else. It is empty, or holds what a writer
    /// that was killed since the machine started left of the same recipe.
    static Result<TreeWriter> create(const std::string& directory);

    /// One file or link as it is; a directory without what is in it. What does not exist (any more)
    /// is left out. kLimitExceeded beyond the bounds of manifest.hpp.
    Status add_entry(const std::string& source, const std::string& target);
    /// The file that source names, through links.
    Status add_file(const std::string& source, const std::string& target);
    /// A directory and all in it, links as they are.
    Status add_tree(const std::string& source, const std::string& target);

    /// Removes what the directory holds besides what was added: of an interrupted writer, whose
    /// sources may have had more. Call it when all is added.
    Status remove_others();

    /// From now on calls `report` with the bytes of files written so far, each time that `step`
    /// more were written.
    void watch(std::uint64_t step, std::function<void(std::uint64_t bytes)> report);

    bool holds(const std::string& target) const { return manifest_.entries.contains(target); }
    const Manifest& manifest() const { return manifest_; }

 private:
    explicit TreeWriter(UniqueFd root) : root_(std::move(root)) {}
    Status add_found(const std::string& source, const struct stat& info, const std::string& target);
    /// Readable by all, whatever the umask of the process is.
    Status make_directory(const std::string& target);
    /// False if one is there that is no directory: what is behind a link is reached through it.
    Result<bool> make_parents(const std::string& target);
    Status copy_file(const std::string& source, const std::string& target);
    /// The file at target if an earlier writer finished it and it has the size, the time and the
    /// rights of this source; else nothing is there afterwards.
    Result<std::optional<Entry>> take_over(const struct stat& source, const std::string& target);
    Status copy_link(const std::string& source, const std::string& target);
    Status note(const std::string& target, Entry entry);

    UniqueFd root_;
    Manifest manifest_;
    std::uint64_t bytes_ = 0;
    std::function<void(std::uint64_t)> report_;
    std::uint64_t report_step_ = 0;
    std::uint64_t told_ = 0;  // at how many bytes last
};

}  // namespace cellkeep::image
