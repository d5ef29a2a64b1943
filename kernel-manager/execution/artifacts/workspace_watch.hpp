// SPDX-License-Identifier: Apache-2.0
//
// Notes which names of a workspace's directories change (inotify(7)), without anybody having to
// look: the kernel keeps the notes until drain(), and an idle session costs no wake-up. Directories
// are watched by descriptor; a name is only a hint where to look. Bounded by kWatched…Max and by
// the host's fs.inotify limits; its user must be able to do without. One thread.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace cellkeep::session {

/// Directories of one session that are watched.
inline constexpr std::size_t kWatchedDirectoriesMax = 1024;
/// Events that one drain() takes. The host's fs.inotify.max_queued_events is usually less.
inline constexpr std::size_t kWatchedEventsMax = 65'536;

class WorkspaceWatch {
 public:
    /// kUnavailable if the host has no more instances to give (fs.inotify.max_user_instances).
    static Result<WorkspaceWatch> create();

    /// Watches an open directory, known by this path from now on. kUnavailable at a bound.
    Status add(int directory, const std::string& path);
    std::size_t directories() const { return paths_.size(); }

    struct Notes {
        std::set<std::string> changed;   // paths of files made, written, moved or removed
        std::set<std::string> closed;    // paths of files that a writer closed, written or not
        std::set<std::string> appeared;  // paths of directories made or moved there
        std::set<std::string> vanished;  // paths of directories removed or moved away
        bool lost = false;               // there was more than was noted
    };
    /// What was noted since the last call.
    Notes drain();

    /// For poll(2): readable if drain() has something to note.
    int fd() const { return fd_.get(); }
    /// The descriptor, for closing where it may take its time: the kernel waits for all readers of
    /// its marks.
    UniqueFd release() { return std::move(fd_); }

 private:
    explicit WorkspaceWatch(UniqueFd fd) : fd_(std::move(fd)) {}
    void note(int watch, std::uint32_t mask, std::string_view name, Notes& notes);

    UniqueFd fd_;
    std::unordered_map<int, std::string> paths_;  // of watched directories
};

}  // namespace cellkeep::session
