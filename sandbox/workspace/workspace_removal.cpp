// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_removal.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/workspace/workspace_access.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

namespace {

using OpenDirectory = Removal::OpenDirectory;

Result<OpenDirectory> open_one(int parent, const std::string& name) {
    BOOST_OUTCOME_TRY(auto fd, open_directory_beneath(parent, name, O_RDONLY));
    std::unique_ptr<DIR, int (*)(DIR*)> stream(
        ::fdopendir(fd.get()), [](DIR* open) { return ::closedir(open); });
    if (!stream) {
        return workspace_failure(errno, "opendir", name);
    }
    (void)fd.release();  // fdopendir(3) took it.
    return OpenDirectory{std::move(stream), name};
}

enum class Stop {
    kEnd,        // of the directory
    kDirectory,  // there is one in it
    kSlice,      // enough for now
};

struct Stopped {
    Stop why = Stop::kEnd;
    std::string name;  // of the directory
};

/// Removes the plain entries of a directory up to the next directory in it, or until `removed` is
/// `slice_end`.
Result<Stopped> remove_plain(
    OpenDirectory& directory, std::size_t& removed, std::size_t slice_end) {
    const int fd = ::dirfd(directory.stream.get());
    while (removed < slice_end) {
        // One thread owns this DIR (readdir(3)).
        const dirent* found = ::readdir(directory.stream.get());  // NOLINT(concurrency-mt-unsafe)
        if (found == nullptr) {
            return Stopped{Stop::kEnd, ""};
        }
        const std::string name = found->d_name;
        if (name == "." || name == "..") {
            continue;
        }
        if (++removed > kRemovedEntriesMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "remove: more than " + std::to_string(kRemovedEntriesMax) + " entries");
        }
        BOOST_OUTCOME_TRY(check_no_mount(fd, name));
        if (::unlinkat(fd, name.c_str(), 0) == 0 || errno == ENOENT) {
            continue;
        }
        if (errno != EISDIR && errno != EPERM) {
            return workspace_failure(errno, "remove", name);
        }
        return Stopped{Stop::kDirectory, name};
    }
    return Stopped{Stop::kSlice, ""};
}

/// Moves a directory that is too deep to be opened in its place up to the one that is removed:
/// however deep a tree is, it needs kRemovedDepthMax descriptors and comes to an end.
Status lift(const std::vector<OpenDirectory>& open, const std::string& name) {
    BOOST_OUTCOME_TRY(const auto suffix, random_hex(8));
    const int from = ::dirfd(open.back().stream.get());
    const int to = ::dirfd(open.front().stream.get());
    if (::renameat(from, name.c_str(), to, (".cellkeep-removed-" + suffix).c_str()) < 0 &&
        errno != ENOENT) {
        return workspace_failure(errno, "remove", name);
    }
    return ok();
}

Status remove_directory(int parent, const std::string& name) {
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) < 0 && errno != ENOENT) {
        return workspace_failure(errno, "remove", name);
    }
    return ok();
}

}  // namespace

Result<Removal> Removal::begin(const Workspace& workspace, const std::string& path) {
    if (path.empty()) {
        return Error(ErrorCode::kInvalidArgument, "remove: the workspace itself stays");
    }
    Removal removal(workspace.file_uid(), workspace.file_gid());
    BOOST_OUTCOME_TRY(const auto state, workspace.state(path));
    if (state.kind != EntryKind::kDirectory) {
        BOOST_OUTCOME_TRY(workspace.remove(path));
        return removal;
    }
    const GuestIdentity identity(removal.uid_, removal.gid_);
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    const std::string top = slash == std::string::npos ? path : path.substr(slash + 1);
    BOOST_OUTCOME_TRY(
        removal.parent_, open_directory_beneath(workspace.directory_fd(), parent, O_PATH));
    BOOST_OUTCOME_TRY(auto first, open_one(removal.parent_.get(), top));
    removal.open_.push_back(std::move(first));
    return removal;
}

Result<bool> Removal::remove_some(std::size_t entries) {
    const GuestIdentity identity(uid_, gid_);
    const std::size_t slice_end = removed_ + entries;
    while (!open_.empty()) {
        BOOST_OUTCOME_TRY(const auto stopped, remove_plain(open_.back(), removed_, slice_end));
        if (stopped.why == Stop::kSlice) {
            return true;
        }
        const bool inner = stopped.why == Stop::kDirectory;
        if (inner && open_.size() >= kRemovedDepthMax) {
            BOOST_OUTCOME_TRY(lift(open_, stopped.name));
            lifted_ = true;
            continue;
        }
        if (!inner && open_.size() == 1 && std::exchange(lifted_, false)) {
            ::rewinddir(open_.front().stream.get());  // what was lifted may not have been seen
            continue;
        }
        if (inner) {
            BOOST_OUTCOME_TRY(
                auto next, open_one(::dirfd(open_.back().stream.get()), stopped.name));
            open_.push_back(std::move(next));
            continue;
        }
        const std::string name = open_.back().name;
        open_.pop_back();
        const int above = open_.empty() ? parent_.get() : ::dirfd(open_.back().stream.get());
        BOOST_OUTCOME_TRY(remove_directory(above, name));
    }
    return false;
}

Status remove_all(const Workspace& workspace, const std::string& path) {
    BOOST_OUTCOME_TRY(auto removal, Removal::begin(workspace, path));
    BOOST_OUTCOME_TRY(const bool more, removal.remove_some(kRemovedEntriesMax + 1));
    CELLKEEP_CHECK(!more);  // so many entries are an error
    return ok();
}

}  // namespace cellkeep::sandbox
