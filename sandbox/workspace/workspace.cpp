// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/workspace/workspace_access.hpp"
#include "sandbox/workspace/workspace_listing.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kComponentBytesMax = 255;
constexpr std::size_t kPathBytesMax = 4095;

std::chrono::system_clock::time_point modified_at(const struct stat& info) {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::seconds(info.st_mtim.tv_sec) +
            std::chrono::nanoseconds(info.st_mtim.tv_nsec)));
}

EntryKind kind_of(const struct stat& info) {
    return S_ISREG(info.st_mode)   ? EntryKind::kFile
           : S_ISDIR(info.st_mode) ? EntryKind::kDirectory
           : S_ISLNK(info.st_mode) ? EntryKind::kLink
                                   : EntryKind::kOther;
}

std::pair<std::string, std::string> split_parent(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) {
        return {"", path};
    }
    return {path.substr(0, slash), path.substr(slash + 1)};
}

/// The directory at path, with every missing one on the way made. Each step starts from a
/// descriptor, so a name that the guest swaps cannot lead it elsewhere.
Result<UniqueFd> make_directories_beneath(int root, const std::string& path) {
    BOOST_OUTCOME_TRY(auto current, open_directory_beneath(root, "", O_PATH));
    std::size_t at = 0;
    while (at < path.size()) {
        const std::size_t end = std::min(path.find('/', at), path.size());
        const std::string component = path.substr(at, end - at);
        if (::mkdirat(current.get(), component.c_str(), 0755) < 0 && errno != EEXIST) {
            return workspace_failure(errno, "mkdir", path.substr(0, end));
        }
        BOOST_OUTCOME_TRY(current, open_directory_beneath(current.get(), component, O_PATH));
        at = end + 1;
    }
    return current;
}

}  // namespace

Entry entry_of(const std::string& path, const struct stat& info) {
    Entry entry;
    entry.path = path;
    const EntryKind kind = kind_of(info);
    entry.kind = kind == EntryKind::kLink ? EntryKind::kOther : kind;
    entry.bytes = S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
    entry.modified = modified_at(info);
    return entry;
}

FileState file_state(const struct stat& info) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    return {
        kind_of(info),
        info.st_mode & 07777U,
        info.st_ino,
        S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0,
        info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec,
        info.st_ctim.tv_sec * kSecond + info.st_ctim.tv_nsec};
}

Result<std::string> parse_workspace_path(std::string_view text) {
    const auto refuse = [&](const char* why) {
        return Error(ErrorCode::kInvalidArgument, std::string("workspace path: ") + why);
    };
    if (text.empty()) {
        return std::string();
    }
    if (text.size() > kPathBytesMax) {
        return refuse("longer than 4095 bytes");
    }
    if (text.find('\0') != std::string_view::npos) {
        return refuse("contains a NUL byte");
    }
    if (text.front() == '/') {
        return refuse("not relative to the workspace");
    }
    std::string_view rest = text;
    while (true) {
        const std::string_view component = rest.substr(0, rest.find('/'));
        if (component.empty()) {
            return refuse("an empty component");
        }
        if (component == "." || component == "..") {
            return refuse("a component that is . or ..");
        }
        if (component.size() > kComponentBytesMax) {
            return refuse("a component longer than 255 bytes");
        }
        if (component.size() == rest.size()) {
            return std::string(text);
        }
        rest.remove_prefix(component.size() + 1);
    }
}

Workspace::Workspace(const Sandbox& sandbox)
    : Workspace(sandbox.workspace_fd(), sandbox.file_uid(), sandbox.file_gid()) {}

Workspace::Workspace(int directory_fd, uid_t file_uid, gid_t file_gid)
    : directory_fd_(directory_fd), file_uid_(file_uid), file_gid_(file_gid) {}

Result<Workspace::OpenedFile> Workspace::open_for_reading(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    OpenedFile file;
    file.fd = UniqueFd(open_beneath(directory_fd_, path, O_RDONLY, 0));
    if (!file.fd) {
        return workspace_failure(errno, "open", path);
    }
    struct stat info {};
    if (::fstat(file.fd.get(), &info) < 0) {
        return workspace_failure(errno, "stat", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return Error(ErrorCode::kInvalidArgument, "open(" + path + "): not a regular file");
    }
    file.bytes = static_cast<std::uint64_t>(info.st_size);
    file.modified = modified_at(info);
    file.state = file_state(info);
    return file;
}

Status Workspace::write_file(const std::string& path, std::string_view bytes) const {
    BOOST_OUTCOME_TRY(auto upload, begin_upload(path));
    BOOST_OUTCOME_TRY(upload.append(bytes));
    return upload.commit();
}

Result<Workspace::Upload> Workspace::begin_upload(const std::string& path) const {
    if (path.empty()) {
        return Error(ErrorCode::kInvalidArgument, "write: the workspace itself is a directory");
    }
    const GuestIdentity identity(file_uid_, file_gid_);
    const auto [parent, name] = split_parent(path);
    BOOST_OUTCOME_TRY(auto directory, make_directories_beneath(directory_fd_, parent));
    BOOST_OUTCOME_TRY(const auto suffix, random_hex(8));
    const std::string temporary = std::string(kUploadPrefix) + suffix;
    UniqueFd file(open_beneath(directory.get(), temporary, O_WRONLY | O_CREAT | O_EXCL, 0644));
    if (!file) {
        return workspace_failure(errno, "create", path);
    }
    return Upload(*this, std::move(directory), std::move(file), temporary, name);
}

Workspace::Upload::Upload(
    const Workspace& workspace,
    UniqueFd directory,
    UniqueFd file,
    std::string temporary,
    std::string name)
    : workspace_(&workspace),
      directory_(std::move(directory)),
      file_(std::move(file)),
      temporary_(std::move(temporary)),
      name_(std::move(name)) {}

Workspace::Upload::Upload(Upload&& other) noexcept = default;

Workspace::Upload::~Upload() {
    if (file_) {
        const GuestIdentity identity(workspace_->file_uid_, workspace_->file_gid_);
        // Ignored: the guest may have taken it away.
        (void)::unlinkat(directory_.get(), temporary_.c_str(), 0);
    }
}

Status Workspace::Upload::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(file_.get(), bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return workspace_failure(errno, "write", name_);
        }
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return ok();
}

Status Workspace::Upload::commit() {
    const GuestIdentity identity(workspace_->file_uid_, workspace_->file_gid_);
    if (::renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) < 0) {
        return workspace_failure(errno, "rename", name_);
    }
    file_.reset();
    return ok();
}

Result<std::vector<Entry>> Workspace::list(const std::string& path) const {
    BOOST_OUTCOME_TRY(auto listing, DirectoryListing::open(*this, path));
    BOOST_OUTCOME_TRY(listing.read_some(kListEntriesMax + 3));  // ".", ".." and one too many
    return listing.take();
}

Result<UniqueFd> Workspace::open_directory(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    return open_directory_beneath(directory_fd_, path, O_RDONLY);
}

Result<FileState> Workspace::state(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    const UniqueFd fd(open_beneath(directory_fd_, path, O_PATH | O_NOFOLLOW, 0));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) < 0) {
        return workspace_failure(errno, "stat", path);
    }
    return file_state(info);
}

Result<std::string> Workspace::read_link(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    const UniqueFd fd(open_beneath(directory_fd_, path, O_PATH | O_NOFOLLOW, 0));
    std::string target(kPathBytesMax, '\0');
    // An empty name is the link that the descriptor is of (readlinkat(2)).
    const ssize_t size = fd ? ::readlinkat(fd.get(), "", target.data(), target.size()) : -1;
    if (size < 0) {
        return workspace_failure(errno, "readlink", path);
    }
    target.resize(static_cast<std::size_t>(size));
    return target;
}

Result<Entry> Workspace::stat(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    // O_PATH and O_NOFOLLOW: a link as the last component is described, not followed (openat2(2)).
    const UniqueFd fd(open_beneath(directory_fd_, path, O_PATH | O_NOFOLLOW, 0));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) < 0) {
        return workspace_failure(errno, "stat", path);
    }
    return entry_of(path, info);
}

Status Workspace::make_directory(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    BOOST_OUTCOME_TRY(make_directories_beneath(directory_fd_, path));
    return ok();
}

Status Workspace::remove(const std::string& path) const {
    if (path.empty()) {
        return Error(ErrorCode::kInvalidArgument, "remove: the workspace itself stays");
    }
    const GuestIdentity identity(file_uid_, file_gid_);
    const auto [parent, name] = split_parent(path);
    BOOST_OUTCOME_TRY(const auto directory, open_directory_beneath(directory_fd_, parent, O_PATH));
    BOOST_OUTCOME_TRY(check_no_mount(directory.get(), name));
    if (::unlinkat(directory.get(), name.c_str(), 0) == 0) {
        return ok();
    }
    if (errno != EISDIR && errno != EPERM) {
        return workspace_failure(errno, "remove", path);
    }
    if (::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) < 0) {
        return workspace_failure(errno, "remove", path);
    }
    return ok();
}

}  // namespace cellkeep::sandbox
