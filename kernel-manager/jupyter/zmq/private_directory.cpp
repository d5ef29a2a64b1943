// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/private_directory.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace cellkeep::jupyter {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPrivate = 0700;
constexpr std::string_view kTemporaryPrefix = "ck-";

bool is_private(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == ::geteuid() && (status.st_mode & 0077U) == 0;
}

Error not_private(const std::string& path) {
    return {
        ErrorCode::kPermissionDenied,
        path + ": not a directory that only this user can enter",
        "Remove it or run: chmod 700 " + path};
}

/// "ck-<pid>-…" of a process that is no more. A pid that was used again only delays the removal.
bool is_left_over(const std::string& name) {
    if (name.rfind(kTemporaryPrefix, 0) != 0) {
        return false;
    }
    pid_t pid = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kTemporaryPrefix.size(), end, pid);
    return parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '-' && pid > 0 &&
           ::kill(pid, 0) != 0 && errno == ESRCH;
}

void sweep(const std::string& base) {
    std::error_code error;  // Ignored throughout: what cannot be removed costs a few bytes.
    for (const fs::directory_entry& entry : fs::directory_iterator(base, error)) {
        const std::string path = entry.path().string();
        if (is_left_over(entry.path().filename().string()) && is_private(path)) {
            std::error_code ignored;
            (void)fs::remove_all(path, ignored);
        }
    }
}

}  // namespace

Result<PrivateDirectory> PrivateDirectory::open(const std::string& path) {
    const bool made = ::mkdir(path.c_str(), kPrivate) == 0;
    if (!made && errno != EEXIST) {
        return Error::from_errno(errno, "mkdir(" + path + ")");
    }
    if (!is_private(path)) {
        return not_private(path);
    }
    return PrivateDirectory(path, made);
}

Result<PrivateDirectory> PrivateDirectory::adopt(const std::string& path) {
    if (!is_private(path)) {
        return not_private(path);
    }
    return PrivateDirectory(path, /*made=*/true);
}

Result<PrivateDirectory> PrivateDirectory::make_temporary(const std::string& base) {
    sweep(base);
    std::string path = base + "/" + std::string(kTemporaryPrefix) + std::to_string(::getpid());
    path += "-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
        return Error::from_errno(errno, "mkdtemp(" + path + ")");
    }
    return PrivateDirectory(path, /*made=*/true);
}

PrivateDirectory::PrivateDirectory(std::string path, bool made)
    : path_(std::move(path)), made_(made) {}

PrivateDirectory::PrivateDirectory(PrivateDirectory&& other) noexcept
    : path_(std::move(other.path_)), made_(std::exchange(other.made_, false)) {}

PrivateDirectory::~PrivateDirectory() {
    if (made_) {
        // Ignored: a file that is not ours is in it. It stays, and so does the directory.
        (void)::rmdir(path_.c_str());
    }
}

void PrivateDirectory::remove_files(
    const std::string& prefix, const std::string& suffix, const IsKept& is_kept) const {
    std::error_code error;  // Ignored: a file that stays does no harm, its sockets are gone.
    for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(prefix) && name.ends_with(suffix) && !is_kept(name)) {
            (void)::unlink(entry.path().c_str());
        }
    }
}

}  // namespace cellkeep::jupyter
