// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/watch/tree_watch.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cellkeep::session {

namespace {

constexpr std::uint32_t kTreeMask = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM |
                                    IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |
                                    IN_EXCL_UNLINK | IN_ONLYDIR;
/// New directories that wait to be walked; beyond it the whole tree is walked once more.
constexpr std::size_t kPendingMax = 256;

std::string join_paths(const std::string& directory, std::string_view name) {
    return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

bool is_at_or_below(const std::string& path, const std::string& directory) {
    return path == directory || directory.empty() || path.starts_with(directory + "/");
}

/// One write makes many events; a reader needs one.
void push_event(TreeWatch::News& news, FileEvent event) {
    const bool repeats =
        event.kind == FileEvent::Kind::kWritten || event.kind == FileEvent::Kind::kAttributes;
    if (!repeats || news.events.empty() || news.events.back() != event) {
        news.events.push_back(std::move(event));
    }
}

}  // namespace

Result<TreeWatch> TreeWatch::open(
    WatchInstance instance,
    const sandbox::Workspace& workspace,
    const std::string& path,
    Depth depth) {
    UniqueFd root(::fcntl(workspace.directory_fd(), F_DUPFD_CLOEXEC, 0));
    if (!root) {
        return Error::from_errno(errno, "watch: fcntl(F_DUPFD_CLOEXEC)");
    }
    BOOST_OUTCOME_TRY(const UniqueFd directory, workspace.open_directory(path));
    TreeWatch watch(std::move(instance), std::move(root), workspace, path, depth);
    BOOST_OUTCOME_TRY(watch.add(directory.get(), path));
    if (depth == Depth::kRecursive) {
        watch.pending_.push_back({path, false});
    } else {
        watch.ready_ = true;
    }
    return watch;
}

TreeWatch::TreeWatch(
    WatchInstance instance,
    UniqueFd root,
    const sandbox::Workspace& workspace,
    std::string path,
    Depth depth)
    : instance_(std::move(instance)),
      root_(std::move(root)),
      workspace_(root_.get(), workspace.file_uid(), workspace.file_gid()),
      path_(std::move(path)),
      depth_(depth) {}

// A walk is not moved: its callback knows its watch. None runs before the first next().
TreeWatch::TreeWatch(TreeWatch&& other) noexcept = default;
TreeWatch::~TreeWatch() = default;

Status TreeWatch::add(int directory, const std::string& path) {
    // By its descriptor, so that no name leads elsewhere: the magic link is the inode (proc(5)).
    const std::string link = "/proc/self/fd/" + std::to_string(directory);
    const int watch = ::inotify_add_watch(fd(), link.c_str(), kTreeMask);
    if (watch < 0) {
        return Error(
            ErrorCode::kUnavailable,
            Error::from_errno(errno, "watch(" + path + ")").message(),
            "Raise fs.inotify.max_user_watches on the server's host.");
    }
    // The same inode has the same number: a directory that moved gets its new path here.
    const bool is_new = paths_.insert_or_assign(watch, path).second;
    if (is_new && (paths_.size() > kTreeWatchDirectoriesMax || !instance_.add_directory())) {
        paths_.erase(watch);
        (void)::inotify_rm_watch(fd(), watch);  // Ignored: closing the descriptor does it too.
        return Error(ErrorCode::kLimitExceeded, "watch(" + path + "): too many directories");
    }
    return ok();
}

TreeWatch::News TreeWatch::next() {
    News news;
    if (walker_ || !pending_.empty()) {
        walk_some(news);
    } else {
        read_some(news);
    }
    news.more = news.more || walker_ || !pending_.empty();
    return news;
}

void TreeWatch::walk_some(News& news) {
    if (!walker_) {
        const Pending next = std::move(pending_.front());
        pending_.pop_front();
        walker_finds_news_ = next.is_news;
        walker_ = std::make_unique<sandbox::WorkspaceWalker>(workspace_, next.path);
        walker_->set_on_directory([this](const std::string& path, int directory) {
            if (add(directory, path).has_error()) {
                complete_ = false;
            }
        });
    }
    for (std::size_t seen = 0; seen < kTreeWatchSliceEntries; ++seen) {
        const auto entry = walker_->next();
        if (!entry) {
            complete_ = complete_ && walker_->complete();
            walker_.reset();
            ready_ = ready_ || pending_.empty();
            return;
        }
        if (walker_finds_news_) {
            const bool directory = entry->state.kind == sandbox::EntryKind::kDirectory;
            push_event(news, {FileEvent::Kind::kCreated, entry->path, "", directory});
        }
    }
}

void TreeWatch::read_some(News& news) {
    // Not initialised: read() says how much of it counts.
    alignas(inotify_event) std::array<char, kTreeWatchReadBytes> buffer;
    ssize_t got = -1;
    do {
        got = ::read(fd(), buffer.data(), buffer.size());
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        news.missed = got < 0 && errno != EAGAIN;
        settle_moved(news);
        return;
    }
    std::size_t at = 0;
    while (at < static_cast<std::size_t>(got)) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + at, sizeof(event));
        // The name is padded with NULs to `len` bytes.
        const char* name = buffer.data() + at + sizeof(event);
        note(event.wd, event.mask, event.cookie, {name, ::strnlen(name, event.len)}, news);
        at += sizeof(event) + event.len;
    }
    news.more = true;  // The next read says whether that was all.
}

void TreeWatch::note(
    int watch, std::uint32_t mask, std::uint32_t cookie, std::string_view name, News& news) {
    if ((mask & IN_Q_OVERFLOW) != 0) {
        settle_moved(news);
        news.missed = true;
        restart_pending();
        return;
    }
    const auto directory = paths_.find(watch);
    if (directory == paths_.end()) {
        return;  // it has just gone
    }
    const bool top = directory->second == path_;
    if ((mask & IN_IGNORED) != 0) {
        news.gone = news.gone || top;
        paths_.erase(directory);
        instance_.remove_directory();
        return;
    }
    if ((mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
        news.gone = news.gone || top;
        return;
    }
    if (!name.empty()) {
        note_entry(join_paths(directory->second, name), mask, cookie, news);
    }
}

void TreeWatch::note_entry(
    const std::string& path, std::uint32_t mask, std::uint32_t cookie, News& news) {
    using Kind = FileEvent::Kind;
    const bool directory = (mask & IN_ISDIR) != 0;
    const bool pairs = moved_ && (mask & IN_MOVED_TO) != 0 && moved_->cookie == cookie;
    if (!pairs) {
        settle_moved(news);
    }
    if (sandbox::is_server_path(path)) {
        moved_.reset();
        return;
    }
    if ((mask & IN_MOVED_FROM) != 0) {
        moved_ = Moved{cookie, path, directory};
        if (directory) {
            forget_below(path);
        }
    } else if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
        if (pairs) {
            push_event(news, {Kind::kRenamed, path, std::exchange(moved_, {})->path, directory});
        } else {
            push_event(news, {Kind::kCreated, path, "", directory});
        }
        if (directory) {
            follow(path);
        }
    } else if ((mask & IN_DELETE) != 0) {
        push_event(news, {Kind::kRemoved, path, "", directory});
    } else if ((mask & IN_MODIFY) != 0) {
        push_event(news, {Kind::kWritten, path, "", directory});
    } else if ((mask & IN_ATTRIB) != 0) {
        push_event(news, {Kind::kAttributes, path, "", directory});
    }
}

/// The other half has not come: it went out of what is watched.
void TreeWatch::settle_moved(News& news) {
    if (const auto gone = std::exchange(moved_, {})) {
        push_event(news, {FileEvent::Kind::kRemoved, gone->path, "", gone->directory});
    }
}

void TreeWatch::follow(const std::string& path) {
    if (depth_ == Depth::kRecursive) {
        if (pending_.size() >= kPendingMax) {
            restart_pending();
        } else {
            pending_.push_back({path, true});
        }
    }
}

/// Directories that appeared unseen are watched from now on. A reader that missed events looks at
/// everything itself, so it gets no events of them.
void TreeWatch::restart_pending() {
    pending_.clear();
    if (depth_ == Depth::kRecursive) {
        pending_.push_back({path_, false});
    }
}

void TreeWatch::forget_below(const std::string& path) {
    for (auto one = paths_.begin(); one != paths_.end();) {
        if (is_at_or_below(one->second, path)) {
            (void)::inotify_rm_watch(fd(), one->first);  // Ignored: it may have gone by itself.
            one = paths_.erase(one);
            instance_.remove_directory();
        } else {
            ++one;
        }
    }
}

Result<TreeWatch> open_tree_watch(
    const std::shared_ptr<WatchRation>& ration,
    const Watcher& whose,
    const Result<sandbox::Workspace>& files,
    const std::string& path,
    TreeWatch::Depth depth) {
    if (files.has_error()) {
        return files.error();
    }
    if (ration == nullptr) {
        return Error(ErrorCode::kUnavailable, "watch: this session's files cannot be watched");
    }
    BOOST_OUTCOME_TRY(auto instance, ration->take(whose));
    return TreeWatch::open(std::move(instance), files.value(), path, depth);
}

}  // namespace cellkeep::session
