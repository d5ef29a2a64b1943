// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_rewrite.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/workspace/workspace_access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kHoleBytes = 4096;

struct NamedPlace {
    UniqueFd directory;
    std::string name;
};

Result<NamedPlace> open_place(const Workspace& workspace, const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const bool at_top = slash == std::string::npos;
    BOOST_OUTCOME_TRY(
        auto directory,
        open_directory_beneath(
            workspace.directory_fd(), at_top ? "" : path.substr(0, slash), O_PATH));
    return NamedPlace{std::move(directory), at_top ? path : path.substr(slash + 1)};
}

/// The file that is there, if it can be written where it is.
UniqueFd open_in_place(const NamedPlace& place) {
    UniqueFd file(open_beneath(place.directory.get(), place.name, O_WRONLY | O_NOFOLLOW, 0));
    struct stat info {};
    // A second name of it would get these contents, too.
    if (!file || ::fstat(file.get(), &info) < 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1 ||
        ::ftruncate(file.get(), 0) < 0) {
        return {};
    }
    return file;
}

bool is_all_zero(std::string_view bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == '\0'; });
}

/// How a path names a descriptor: chmod(2) and utimensat(2) take no O_PATH descriptor.
std::string name_of(const UniqueFd& fd) {
    return "/proc/self/fd/" + std::to_string(fd.get());
}

Status apply(const UniqueFd& fd, const FileAttributes& attributes, const std::string& path) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::string name = name_of(fd);
    timespec modified{};
    modified.tv_sec = attributes.modified / kSecond;
    modified.tv_nsec = attributes.modified % kSecond;
    if (modified.tv_nsec < 0) {  // before 1970
        modified.tv_nsec += kSecond;
        --modified.tv_sec;
    }
    const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, modified};
    if (::chmod(name.c_str(), attributes.mode & 07777U) < 0 ||
        ::utimensat(AT_FDCWD, name.c_str(), times.data(), 0) < 0) {
        return workspace_failure(errno, "chmod", path);
    }
    return ok();
}

}  // namespace

Result<Rewriting> Rewriting::begin(const Workspace& workspace, const std::string& path) {
    const GuestIdentity identity(workspace.file_uid(), workspace.file_gid());
    BOOST_OUTCOME_TRY(NamedPlace place, open_place(workspace, path));
    UniqueFd present = open_in_place(place);
    if (present) {
        return Rewriting(
            workspace, std::move(place.directory), std::move(present), std::move(place.name));
    }
    BOOST_OUTCOME_TRY(const auto suffix, random_hex(8));
    std::string temporary = std::string(kUploadPrefix) + suffix;
    UniqueFd made(
        open_beneath(place.directory.get(), temporary, O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (!made) {
        return workspace_failure(errno, "create", path);
    }
    Rewriting rewriting(
        workspace, std::move(place.directory), std::move(made), std::move(place.name));
    rewriting.temporary_ = std::move(temporary);
    return rewriting;
}

Rewriting::Rewriting(Rewriting&& other) noexcept = default;

Rewriting::~Rewriting() {
    if (file_ && !temporary_.empty()) {
        const GuestIdentity identity(workspace_->file_uid(), workspace_->file_gid());
        // Ignored: the guest may have taken it away.
        (void)::unlinkat(directory_.get(), temporary_.c_str(), 0);
    }
}

Status Rewriting::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::string_view block = bytes.substr(0, kHoleBytes);
        // Blocks that are no hole go in one write.
        std::size_t size = 0;
        while (size < bytes.size() && !is_all_zero(bytes.substr(size, kHoleBytes))) {
            size += std::min(kHoleBytes, bytes.size() - size);
        }
        if (size == 0) {
            written_ += block.size();
            bytes.remove_prefix(block.size());
            continue;
        }
        const ssize_t wrote =
            ::pwrite(file_.get(), bytes.data(), size, static_cast<off_t>(written_));
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return workspace_failure(errno, "write", name_);
        }
        written_ += static_cast<std::size_t>(wrote);
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return ok();
}

Result<FileState> Rewriting::finish(const FileAttributes& attributes) {
    const GuestIdentity identity(workspace_->file_uid(), workspace_->file_gid());
    if (::ftruncate(file_.get(), static_cast<off_t>(written_)) < 0) {
        return workspace_failure(errno, "truncate", name_);
    }
    BOOST_OUTCOME_TRY(apply(file_, attributes, name_));
    if (!temporary_.empty() &&
        ::renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) < 0) {
        return workspace_failure(errno, "rename", name_);
    }
    temporary_.clear();
    struct stat info {};
    if (::fstat(file_.get(), &info) < 0) {
        return workspace_failure(errno, "stat", name_);
    }
    return file_state(info);
}

Status make_link(const Workspace& workspace, const std::string& path, const std::string& target) {
    const GuestIdentity identity(workspace.file_uid(), workspace.file_gid());
    BOOST_OUTCOME_TRY(const NamedPlace place, open_place(workspace, path));
    if (::symlinkat(target.c_str(), place.directory.get(), place.name.c_str()) < 0) {
        return workspace_failure(errno, "symlink", path);
    }
    return ok();
}

Status set_attributes(
    const Workspace& workspace,
    const std::string& path,
    EntryKind kind,
    const FileAttributes& attributes) {
    const GuestIdentity identity(workspace.file_uid(), workspace.file_gid());
    const UniqueFd fd(open_beneath(workspace.directory_fd(), path, O_PATH | O_NOFOLLOW, 0));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) < 0) {
        return workspace_failure(errno, "open", path);
    }
    if (file_state(info).kind != kind ||
        (kind != EntryKind::kFile && kind != EntryKind::kDirectory)) {
        return Error(ErrorCode::kInvalidArgument, "chmod(" + path + "): of another kind");
    }
    return apply(fd, attributes, path);
}

}  // namespace cellkeep::sandbox
