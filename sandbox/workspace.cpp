// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/layer_switch.hpp"
#include "sandbox/sandbox.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
constexpr std::string_view kUploadPrefix = ".cellkeep-upload-";

/// Makes this thread look like the guest to the file system while it lives: new files belong to the
/// guest, and nothing is reached that the guest could not reach (setfsuid(2) also takes the file
/// capabilities away). Without effect in a server that is not root.
class GuestIdentity {
 public:
    GuestIdentity(uid_t uid, gid_t gid) : active_(::geteuid() == 0 && uid != 0) {
        if (active_) {
            // Ignored: both return the previous id and cannot fail for root (setfsuid(2)).
            if (layer_removed("workspace_user")) {
                return;
            }
            (void)::setfsgid(gid);
            (void)::setfsuid(uid);
        }
    }
    GuestIdentity(const GuestIdentity&) = delete;
    GuestIdentity& operator=(const GuestIdentity&) = delete;
    ~GuestIdentity() {
        if (active_) {
            // Ignored: as above.
            (void)::setfsuid(::geteuid());
            (void)::setfsgid(::getegid());
        }
    }

 private:
    bool active_;
};

Error failure(int error, const std::string& operation, const std::string& path) {
    Error plain = Error::from_errno(error, operation + "(" + path + ")");
    switch (error) {
        case ENOENT:
        case ENOTDIR:
            return {ErrorCode::kNotFound, plain.message()};
        case ELOOP:  // a symbolic link in the way (RESOLVE_NO_SYMLINKS)
        case EXDEV:  // out of the workspace (RESOLVE_BENEATH)
        case ENXIO:  // a socket, or a fifo without a reader
        case EISDIR:
        case ENAMETOOLONG:
            return {ErrorCode::kInvalidArgument, plain.message()};
        case EACCES:
        case EPERM:
            return {ErrorCode::kPermissionDenied, plain.message()};
        case ENOTEMPTY:
        case EEXIST:
        case EAGAIN:  // the guest holds a lease on it
            return {ErrorCode::kConflict, plain.message()};
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
        case ENOMEM:
            return {ErrorCode::kLimitExceeded, plain.message()};
        default:
            return plain;
    }
}

/// O_NONBLOCK everywhere: no fifo and no lease of the guest's may hold the server up.
int open_beneath(int directory, const std::string& path, int flags, mode_t mode) {
    open_how how{};
    how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
    if ((flags & O_PATH) == 0 && !layer_removed("workspace_nonblocking")) {
        how.flags |= O_NONBLOCK | O_NOCTTY;
    }
    how.mode = mode;
    if (!layer_removed("workspace_beneath")) {
        how.resolve =
            RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    }
    long fd = -1;
    do {
        fd =
            ::syscall(SYS_openat2, directory, path.empty() ? "." : path.c_str(), &how, sizeof(how));
    } while (fd < 0 && errno == EINTR);
    return static_cast<int>(fd);
}

std::chrono::system_clock::time_point modified_at(const struct stat& info) {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::seconds(info.st_mtim.tv_sec) +
            std::chrono::nanoseconds(info.st_mtim.tv_nsec)));
}

Entry entry_of(const std::string& path, const struct stat& info) {
    Entry entry;
    entry.path = path;
    entry.kind = S_ISREG(info.st_mode)   ? EntryKind::kFile
                 : S_ISDIR(info.st_mode) ? EntryKind::kDirectory
                                         : EntryKind::kOther;
    entry.bytes = S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
    entry.modified = modified_at(info);
    return entry;
}

std::pair<std::string, std::string> split_parent(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) {
        return {"", path};
    }
    return {path.substr(0, slash), path.substr(slash + 1)};
}

Result<UniqueFd> open_directory(int root, const std::string& path, int flags) {
    UniqueFd fd(open_beneath(root, path, flags | O_DIRECTORY, 0));
    if (!fd) {
        return failure(errno, "open", path);
    }
    return fd;
}

/// The directory at path, with every missing one on the way made. Each step starts from a
/// descriptor, so a name that the guest swaps cannot lead it elsewhere.
Result<UniqueFd> make_directories(int root, const std::string& path) {
    BOOST_OUTCOME_TRY(auto current, open_directory(root, "", O_PATH));
    std::size_t at = 0;
    while (at < path.size()) {
        const std::size_t end = std::min(path.find('/', at), path.size());
        const std::string component = path.substr(at, end - at);
        if (::mkdirat(current.get(), component.c_str(), 0755) < 0 && errno != EEXIST) {
            return failure(errno, "mkdir", path.substr(0, end));
        }
        BOOST_OUTCOME_TRY(current, open_directory(current.get(), component, O_PATH));
        at = end + 1;
    }
    return current;
}

}  // namespace

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
        return failure(errno, "open", path);
    }
    struct stat info {};
    if (::fstat(file.fd.get(), &info) < 0) {
        return failure(errno, "stat", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return Error(ErrorCode::kInvalidArgument, "open(" + path + "): not a regular file");
    }
    file.bytes = static_cast<std::uint64_t>(info.st_size);
    file.modified = modified_at(info);
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
    BOOST_OUTCOME_TRY(auto directory, make_directories(directory_fd_, parent));
    BOOST_OUTCOME_TRY(const auto suffix, random_hex(8));
    const std::string temporary = std::string(kUploadPrefix) + suffix;
    UniqueFd file(open_beneath(directory.get(), temporary, O_WRONLY | O_CREAT | O_EXCL, 0644));
    if (!file) {
        return failure(errno, "create", path);
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
            return failure(errno, "write", name_);
        }
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return ok();
}

Status Workspace::Upload::commit() {
    const GuestIdentity identity(workspace_->file_uid_, workspace_->file_gid_);
    if (::renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) < 0) {
        return failure(errno, "rename", name_);
    }
    file_.reset();
    return ok();
}

Result<std::vector<Entry>> Workspace::list(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    BOOST_OUTCOME_TRY(auto fd, open_directory(directory_fd_, path, O_RDONLY));
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), &::closedir);
    if (!directory) {
        return failure(errno, "opendir", path);
    }
    const int directory_fd = fd.release();  // fdopendir(3) took it.
    std::vector<Entry> entries;
    std::size_t seen = 0;
    // One thread owns this DIR (readdir(3)).
    while (const dirent* found = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
        const std::string name = found->d_name;
        if (name == "." || name == "..") {
            continue;
        }
        // Counted before anything is passed over: what the guest can name bounds this loop, too.
        if (++seen > kListEntriesMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "list(" + path + "): more than " + std::to_string(kListEntriesMax) + " entries");
        }
        if (name.starts_with(kUploadPrefix)) {
            continue;
        }
        struct stat info {};
        if (::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT) {
                continue;  // The guest removed it in the meantime.
            }
            return failure(errno, "stat", name);
        }
        entries.push_back(entry_of(path.empty() ? name : path + "/" + name, info));
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.path < b.path;
    });
    return entries;
}

Result<Entry> Workspace::stat(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    // O_PATH and O_NOFOLLOW: a link as the last component is described, not followed (openat2(2)).
    const UniqueFd fd(open_beneath(directory_fd_, path, O_PATH | O_NOFOLLOW, 0));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) < 0) {
        return failure(errno, "stat", path);
    }
    return entry_of(path, info);
}

Status Workspace::make_directory(const std::string& path) const {
    const GuestIdentity identity(file_uid_, file_gid_);
    BOOST_OUTCOME_TRY(make_directories(directory_fd_, path));
    return ok();
}

Status Workspace::remove(const std::string& path) const {
    if (path.empty()) {
        return Error(ErrorCode::kInvalidArgument, "remove: the workspace itself stays");
    }
    const GuestIdentity identity(file_uid_, file_gid_);
    const auto [parent, name] = split_parent(path);
    BOOST_OUTCOME_TRY(const auto directory, open_directory(directory_fd_, parent, O_PATH));
    if (::unlinkat(directory.get(), name.c_str(), 0) == 0) {
        return ok();
    }
    if (errno != EISDIR && errno != EPERM) {
        return failure(errno, "remove", path);
    }
    if (::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) < 0) {
        return failure(errno, "remove", path);
    }
    return ok();
}

}  // namespace cellkeep::sandbox
