// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_moves.hpp"

#include "sandbox/workspace/workspace_access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace cellkeep::sandbox {

namespace {

/// The directory that holds a path, and the path's last component.
struct NameInDirectory {
    UniqueFd directory;
    std::string name;
};

Result<NameInDirectory> find_parent(int workspace, const std::string& path) {
    const std::size_t slash = path.rfind('/');
    NameInDirectory found;
    found.name = slash == std::string::npos ? path : path.substr(slash + 1);
    const std::string parent = slash == std::string::npos ? std::string() : path.substr(0, slash);
    BOOST_OUTCOME_TRY(found.directory, open_directory_beneath(workspace, parent, O_PATH));
    return found;
}

}  // namespace

Status rename(
    const Workspace& workspace, const std::string& from, const std::string& to, Taken taken) {
    if (from.empty() || to.empty()) {
        return Error(ErrorCode::kInvalidArgument, "rename: the workspace itself stays");
    }
    const GuestIdentity identity(workspace.file_uid(), workspace.file_gid());
    BOOST_OUTCOME_TRY(const auto source, find_parent(workspace.directory_fd(), from));
    BOOST_OUTCOME_TRY(const auto target, find_parent(workspace.directory_fd(), to));
    if (taken == Taken::kReplaced) {
        BOOST_OUTCOME_TRY(check_no_mount(target.directory.get(), target.name));
    }
    const int renamed = ::renameat2(
        source.directory.get(),
        source.name.c_str(),
        target.directory.get(),
        target.name.c_str(),
        taken == Taken::kReplaced ? 0U : static_cast<unsigned>(RENAME_NOREPLACE));
    if (renamed < 0 && errno == EINVAL) {  // a directory into itself (rename(2))
        return Error(
            ErrorCode::kInvalidArgument, "rename(" + from + "): " + to + " is inside of it");
    }
    if (renamed < 0 && errno == ENOTDIR) {
        return Error(
            ErrorCode::kConflict,
            "rename(" + from + "): a directory does not take the place of the file " + to);
    }
    if (renamed < 0) {
        return workspace_failure(errno, "rename", errno == EEXIST ? to : from);
    }
    return ok();
}

Result<UniqueFd> open_for_appending(const Workspace& workspace, const std::string& path) {
    const GuestIdentity identity(workspace.file_uid(), workspace.file_gid());
    UniqueFd file(open_beneath(workspace.directory_fd(), path, O_WRONLY | O_APPEND, 0));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) < 0) {
        return workspace_failure(errno, "open", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return Error(ErrorCode::kInvalidArgument, "open(" + path + "): not a regular file");
    }
    return file;
}

Status append(const UniqueFd& file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return workspace_failure(errno, "write", "an opened file");
        }
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return ok();
}

}  // namespace cellkeep::sandbox
