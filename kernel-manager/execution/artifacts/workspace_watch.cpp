// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/artifacts/workspace_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace cellkeep::session {

namespace {

constexpr std::uint32_t kMask = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM |
                                IN_MOVED_TO | IN_DELETE | IN_EXCL_UNLINK | IN_ONLYDIR;
constexpr std::size_t kWatchReadBytes = 64ULL << 10U;

}  // namespace

Result<WorkspaceWatch> WorkspaceWatch::create() {
    UniqueFd fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!fd) {
        return Error(ErrorCode::kUnavailable, Error::from_errno(errno, "inotify_init1").message());
    }
    return WorkspaceWatch(std::move(fd));
}

Status WorkspaceWatch::add(int directory, const std::string& path) {
    // By its descriptor, so that no name leads elsewhere: the magic link is the inode (proc(5)).
    const std::string link = "/proc/self/fd/" + std::to_string(directory);
    const int watch = ::inotify_add_watch(fd_.get(), link.c_str(), kMask);
    if (watch < 0) {
        return Error(
            ErrorCode::kUnavailable,
            Error::from_errno(errno, "inotify_add_watch(" + path + ")").message());
    }
    // The same inode has the same number: a directory that moved gets its new path here.
    paths_[watch] = path;
    if (paths_.size() > kWatchedDirectoriesMax) {
        paths_.erase(watch);
        (void)::inotify_rm_watch(fd_.get(), watch);  // Ignored: closing the descriptor does it too.
        return Error(ErrorCode::kUnavailable, "watch(" + path + "): too many directories");
    }
    return ok();
}

void WorkspaceWatch::note(int watch, std::uint32_t mask, std::string_view name, Notes& notes) {
    if ((mask & IN_Q_OVERFLOW) != 0) {
        notes.lost = true;
        return;
    }
    const auto directory = paths_.find(watch);
    if (directory == paths_.end()) {
        return;  // it has just gone
    }
    if ((mask & IN_IGNORED) != 0) {
        paths_.erase(directory);
        return;
    }
    if (name.empty()) {
        return;
    }
    std::string path = directory->second;
    path += (path.empty() ? "" : "/");
    path += name;
    if ((mask & IN_CLOSE_WRITE) != 0) {
        notes.closed.insert(std::move(path));
    } else if ((mask & IN_ISDIR) == 0) {
        notes.changed.insert(std::move(path));
    } else if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
        notes.appeared.insert(std::move(path));
    } else if ((mask & (IN_DELETE | IN_MOVED_FROM)) != 0) {
        notes.vanished.insert(std::move(path));
    }
}

WorkspaceWatch::Notes WorkspaceWatch::drain() {
    Notes notes;
    // Not initialised: read() says how much of it counts, which is nothing at the end of most runs.
    alignas(inotify_event) std::array<char, kWatchReadBytes> buffer;
    std::size_t events = 0;
    for (;;) {
        const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            notes.lost = notes.lost || (got < 0 && errno != EAGAIN);
            return notes;
        }
        std::size_t at = 0;
        while (at < static_cast<std::size_t>(got)) {
            inotify_event event{};
            std::memcpy(&event, buffer.data() + at, sizeof(event));
            // The name is padded with NULs to `len` bytes.
            const char* name = buffer.data() + at + sizeof(event);
            note(event.wd, event.mask, {name, ::strnlen(name, event.len)}, notes);
            at += sizeof(event) + event.len;
            ++events;
        }
        if (events >= kWatchedEventsMax) {
            notes.lost = true;  // the guest makes more faster than we read: look instead
            return notes;
        }
    }
}

}  // namespace cellkeep::session
