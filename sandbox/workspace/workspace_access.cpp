// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_access.hpp"

#include "sandbox/shared/layer_switch.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cellkeep::sandbox {

GuestIdentity::GuestIdentity(uid_t uid, gid_t gid) : active_(::geteuid() == 0 && uid != 0) {
    if (active_) {
        // Ignored: both return the previous id and cannot fail for root (setfsuid(2)).
        if (layer_removed("workspace_user")) {
            return;
        }
        (void)::setfsgid(gid);
        (void)::setfsuid(uid);
    }
}

GuestIdentity::~GuestIdentity() {
    if (active_) {
        // Ignored: as above.
        (void)::setfsuid(::geteuid());
        (void)::setfsgid(::getegid());
    }
}

Status check_no_mount(int directory, const std::string& name) {
    struct statx info {};
    // statx(2) follows mounts at the last component, which unlinkat(2) does not.
    constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
    if (::statx(directory, name.c_str(), kFlags, STATX_TYPE, &info) < 0) {
        return ok();  // what follows says why
    }
    if ((info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
        return Error(
            ErrorCode::kPermissionDenied,
            "remove(" + name + "): the operator's input is mounted there");
    }
    return ok();
}

Error workspace_failure(int error, const std::string& operation, const std::string& path) {
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

Result<UniqueFd> open_directory_beneath(int directory, const std::string& path, int flags) {
    UniqueFd fd(open_beneath(directory, path, flags | O_DIRECTORY, 0));
    if (!fd) {
        return workspace_failure(errno, "open", path);
    }
    return fd;
}

}  // namespace cellkeep::sandbox
