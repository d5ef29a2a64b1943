// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/socket/unix_socket.hpp"

#include "protocol/support/unique_fd.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cellkeep::http {

namespace {

/// The errno of connect(2), 0 if a server answers.
int try_to_connect(const std::string& path) {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (!fd || path.size() >= sizeof address.sun_path) {
        return !fd ? errno : ENAMETOOLONG;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    return ::connect(fd.get(), generic, sizeof address) == 0 ? 0 : errno;
}

}  // namespace

Status UnixSocketFile::make_room(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) {
            return ok();
        }
        return Error::from_errno(errno, "lstat(" + path + ")");
    }
    if (!S_ISSOCK(status.st_mode) || status.st_uid != ::geteuid()) {
        return Error(
            ErrorCode::kConflict,
            path + " exists and is not a socket of this user",
            "Choose another path, or remove it.");
    }
    // Only a socket whose listener is gone refuses; a full backlog is EAGAIN (connect(2)).
    if (try_to_connect(path) != ECONNREFUSED) {
        return Error(
            ErrorCode::kConflict,
            "another server listens on " + path,
            "Choose another path, or stop the other server.");
    }
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
        return Error::from_errno(errno, "unlink(" + path + ")");
    }
    return ok();
}

Result<UnixSocketFile> UnixSocketFile::adopt(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        return Error::from_errno(errno, "lstat(" + path + ")");
    }
    UnixSocketFile file(path, status.st_dev, status.st_ino);
    if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) {
        return Error::from_errno(errno, "chmod(" + path + ")");
    }
    return file;
}

UnixSocketFile::UnixSocketFile(UnixSocketFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}

UnixSocketFile& UnixSocketFile::operator=(UnixSocketFile&& other) noexcept {
    if (this != &other) {
        remove();
        path_ = std::exchange(other.path_, {});
        device_ = other.device_;
        inode_ = other.inode_;
    }
    return *this;
}

UnixSocketFile::~UnixSocketFile() {
    remove();
}

void UnixSocketFile::remove() {
    struct stat status {};
    if (!path_.empty() && ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
        status.st_ino == inode_) {
        // Ignored: a file that cannot be removed is found dead by the next server.
        (void)::unlink(path_.c_str());
    }
    path_.clear();
}

}  // namespace cellkeep::http
