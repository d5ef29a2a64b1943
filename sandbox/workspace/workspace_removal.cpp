// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_removal.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/workspace/workspace_access.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

namespace {

struct OpenDirectory {
    std::unique_ptr<DIR, int (*)(DIR*)> stream;
    std::string name;  // in its parent
};

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

/// Removes the plain entries of a directory up to the next directory in it, whose name it returns.
Result<std::optional<std::string>> remove_plain(OpenDirectory& directory, std::size_t& removed) {
    const int fd = ::dirfd(directory.stream.get());
    // One thread owns this DIR (readdir(3)).
    while (const dirent* found =
               ::readdir(directory.stream.get())) {  // NOLINT(concurrency-mt-unsafe)
        const std::string name = found->d_name;
        if (name == "." || name == "..") {
            continue;
        }
        if (++removed > kRemovedEntriesMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "remove: more than " + std::to_string(kRemovedEntriesMax) + " entries");
        }
        if (::unlinkat(fd, name.c_str(), 0) == 0 || errno == ENOENT) {
            continue;
        }
        if (errno != EISDIR && errno != EPERM) {
            return workspace_failure(errno, "remove", name);
        }
        return std::optional<std::string>(name);
    }
    return std::optional<std::string>();
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

Status remove_all(const Workspace& workspace, const std::string& path) {
    if (path.empty()) {
        return Error(ErrorCode::kInvalidArgument, "remove: the workspace itself stays");
    }
    BOOST_OUTCOME_TRY(const auto state, workspace.state(path));
    if (state.kind != EntryKind::kDirectory) {
        return workspace.remove(path);
    }
    const GuestIdentity identity(workspace.file_uid(), workspace.file_gid());
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    const std::string top = slash == std::string::npos ? path : path.substr(slash + 1);
    BOOST_OUTCOME_TRY(
        const auto parent_fd, open_directory_beneath(workspace.directory_fd(), parent, O_PATH));
    std::vector<OpenDirectory> open;
    BOOST_OUTCOME_TRY(auto first, open_one(parent_fd.get(), top));
    open.push_back(std::move(first));
    std::size_t removed = 0;
    bool lifted = false;
    while (!open.empty()) {
        BOOST_OUTCOME_TRY(const auto inner, remove_plain(open.back(), removed));
        if (inner && open.size() >= kRemovedDepthMax) {
            BOOST_OUTCOME_TRY(lift(open, *inner));
            lifted = true;
            continue;
        }
        if (!inner && open.size() == 1 && std::exchange(lifted, false)) {
            ::rewinddir(open.front().stream.get());  // what was lifted may not have been seen
            continue;
        }
        if (inner) {
            BOOST_OUTCOME_TRY(auto next, open_one(::dirfd(open.back().stream.get()), *inner));
            open.push_back(std::move(next));
            continue;
        }
        const std::string name = open.back().name;
        open.pop_back();
        const int above = open.empty() ? parent_fd.get() : ::dirfd(open.back().stream.get());
        BOOST_OUTCOME_TRY(remove_directory(above, name));
    }
    return ok();
}

}  // namespace cellkeep::sandbox
