// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_listing.hpp"

#include "sandbox/workspace/workspace_access.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cellkeep::sandbox {

Result<DirectoryListing> DirectoryListing::open(
    const Workspace& workspace, const std::string& path) {
    const GuestIdentity identity(workspace.file_uid(), workspace.file_gid());
    BOOST_OUTCOME_TRY(auto fd, open_directory_beneath(workspace.directory_fd(), path, O_RDONLY));
    Stream stream(::fdopendir(fd.get()), [](DIR* opened) { return ::closedir(opened); });
    if (!stream) {
        return workspace_failure(errno, "opendir", path);
    }
    (void)fd.release();  // fdopendir(3) took it.
    return DirectoryListing(std::move(stream), workspace, path);
}

DirectoryListing::DirectoryListing(Stream stream, const Workspace& workspace, std::string path)
    : stream_(std::move(stream)),
      uid_(workspace.file_uid()),
      gid_(workspace.file_gid()),
      path_(std::move(path)) {}

Result<bool> DirectoryListing::read_some(std::size_t entries) {
    const GuestIdentity identity(uid_, gid_);
    for (std::size_t i = 0; i < entries; ++i) {
        BOOST_OUTCOME_TRY(const bool more, read_one());
        if (!more) {
            return false;
        }
    }
    return true;
}

Result<bool> DirectoryListing::read_one() {
    // One thread owns this DIR (readdir(3)).
    const dirent* found = ::readdir(stream_.get());  // NOLINT(concurrency-mt-unsafe)
    if (found == nullptr) {
        return false;
    }
    const std::string name = found->d_name;
    if (name == "." || name == "..") {
        return true;
    }
    // Counted before anything is passed over: what the guest can name bounds this, too.
    if (++seen_ > kListEntriesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "list(" + path_ + "): more than " + std::to_string(kListEntriesMax) + " entries");
    }
    if (name.starts_with(kUploadPrefix)) {
        return true;
    }
    struct stat info {};
    if (::fstatat(::dirfd(stream_.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? Result<bool>(true)  // The guest removed it in the meantime.
                               : workspace_failure(errno, "stat", name);
    }
    entries_.push_back(entry_of(path_.empty() ? name : path_ + "/" + name, info));
    return true;
}

std::vector<Entry> DirectoryListing::take() {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
        return a.path < b.path;
    });
    return std::move(entries_);
}

}  // namespace cellkeep::sandbox
