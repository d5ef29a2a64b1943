// SPDX-License-Identifier: Apache-2.0
//
// What happens to the files of a directory of a workspace, and of those in it if that is asked for
// (inotify(7)). Directories are watched by descriptor and opened beneath the workspace, so no link
// leads out. The kernel keeps the events until next() reads them, up to
// fs.inotify.max_queued_events; what comes beyond that is reported as missed. Nothing here blocks,
// and each call does a bounded amount of work. A name is only a hint: the guest may have changed it
// again. What belongs to the server (.cellkeep, uploads on their way) is left out. One thread.
#pragma once

#include "kernel-manager/execution/watch/watch_ration.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/workspace/workspace.hpp"
#include "sandbox/workspace/workspace_walker.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cellkeep::session {

/// Directories that one reader watches.
inline constexpr std::size_t kTreeWatchDirectoriesMax = 1024;
/// Bytes of events that one next() reads, and entries of new directories that it looks at. They
/// bound the events that it returns.
inline constexpr std::size_t kTreeWatchReadBytes = 16ULL << 10U;
inline constexpr std::size_t kTreeWatchSliceEntries = 256;

struct FileEvent {
    enum class Kind { kCreated, kWritten, kRemoved, kRenamed, kAttributes };
    Kind kind = Kind::kCreated;
    std::string path;  // relative to the workspace
    std::string from;  // kRenamed: its path before
    bool directory = false;

    bool operator==(const FileEvent&) const = default;
};

class TreeWatch {
 public:
    enum class Depth { kDirectory, kRecursive };

    /// The workspace may go while this lives. kNotFound, kInvalidArgument: there is no such
    /// directory; kUnavailable: the host has no more watches to give (fs.inotify.max_user_watches).
    /// With Depth::kRecursive, the directories in it are watched by the next calls of next().
    static Result<TreeWatch> open(
        WatchInstance instance,
        const sandbox::Workspace& workspace,
        const std::string& path,
        Depth depth);
    TreeWatch(TreeWatch&&) noexcept;
    TreeWatch& operator=(TreeWatch&&) = delete;
    TreeWatch(const TreeWatch&) = delete;
    TreeWatch& operator=(const TreeWatch&) = delete;
    ~TreeWatch();

    struct News {
        std::vector<FileEvent> events;
        bool missed = false;  // there were more than the kernel keeps
        bool gone = false;    // the directory was removed or moved: nothing more comes
        bool more = false;    // call it again soon; else when fd() is readable
    };
    /// What has happened since the last call. What was there when the watch began is no news; what
    /// is found in a directory that appears is: such an entry may come twice.
    News next();
    /// Every directory that there is has been looked for once.
    bool ready() const { return ready_; }
    /// False: a directory could not be watched, because there are too many, or it is not readable.
    bool complete() const { return complete_; }
    std::size_t directories() const { return paths_.size(); }
    int fd() const { return instance_.get(); }

 private:
    struct Pending {
        std::string path;
        bool is_news = false;  // what is found in it
    };
    struct Moved {
        std::uint32_t cookie = 0;
        std::string path;
        bool directory = false;
    };

    TreeWatch(
        WatchInstance instance,
        UniqueFd root,
        const sandbox::Workspace& workspace,
        std::string path,
        Depth depth);
    Status add(int directory, const std::string& path);
    void walk_some(News& news);
    void read_some(News& news);
    void note(
        int watch, std::uint32_t mask, std::uint32_t cookie, std::string_view name, News& news);
    void note_entry(const std::string& path, std::uint32_t mask, std::uint32_t cookie, News& news);
    void settle_moved(News& news);
    void follow(const std::string& path);
    void forget_below(const std::string& path);
    void restart_pending();

    WatchInstance instance_;
    UniqueFd root_;  // the workspace's directory
    sandbox::Workspace workspace_;
    std::string path_;
    Depth depth_;
    std::unordered_map<int, std::string> paths_;  // of watched directories
    std::deque<Pending> pending_;                 // directories that are to be walked
    std::unique_ptr<sandbox::WorkspaceWalker> walker_;
    bool walker_finds_news_ = false;
    std::optional<Moved> moved_;  // its other half may follow
    bool ready_ = false;
    bool complete_ = true;
};

/// The same with an instance of the ration, which may be null (kUnavailable). files: the session's,
/// or why it has none.
Result<TreeWatch> open_tree_watch(
    const std::shared_ptr<WatchRation>& ration,
    const Watcher& whose,
    const Result<sandbox::Workspace>& files,
    const std::string& path,
    TreeWatch::Depth depth);

}  // namespace cellkeep::session
