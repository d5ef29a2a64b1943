// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/system_tree.hpp"

#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 6> kMergedFolders{
    "bin", "sbin", "lib", "lib32", "lib64", "libx32"};

/// Beneath these nothing is kept: what no program needs, and what a system that starts reads.
constexpr std::array<std::string_view, 33> kNotForSessions{
    "usr/share/doc",      "usr/share/man",      "usr/share/info",
    "usr/share/lintian",  "usr/share/bug",      "usr/share/bash-completion",
    "usr/share/zsh",      "usr/share/doc-base", "usr/share/menu",
    "usr/share/locale",   "usr/lib/systemd",    "usr/lib/udev",
    "usr/lib/sysusers.d", "usr/lib/tmpfiles.d", "usr/local",
    "opt/cellkeep",       "etc/init.d",         "etc/default",
    "etc/cron.d",         "etc/cron.daily",     "etc/cron.hourly",
    "etc/cron.weekly",    "etc/cron.monthly",   "etc/systemd",
    "etc/logrotate.d",    "etc/pam.d",          "etc/apt",
    "etc/dpkg",           "etc/sudoers.d",      "etc/profile.d",
    "etc/security",       "etc/modprobe.d",     "etc/apparmor.d"};

/// What the sandbox makes itself (sandbox/policy/plan_builder.cpp), and the image's own.
constexpr std::array<std::string_view, 13> kMadeBySandbox{
    "etc/passwd",
    "etc/group",
    "etc/shadow",
    "etc/gshadow",
    "etc/hosts",
    "etc/hostname",
    "etc/nsswitch.conf",
    "etc/resolv.conf",
    "etc/ld.so.cache",
    "etc/ld.so.preload",
    "etc/localtime",
    "etc/mtab",
    "etc/sudoers"};

bool is_in_folder(std::string_view path, std::string_view folder) {
    return path == folder ||
           (path.starts_with(folder) && path.substr(folder.size()).starts_with('/'));
}

bool has_place(std::string_view path) {
    const bool kept =
        is_in_folder(path, "usr") || is_in_folder(path, "etc") || is_in_folder(path, "opt");
    const auto holds_it = [path](std::string_view folder) { return is_in_folder(path, folder); };
    return kept && std::none_of(kNotForSessions.begin(), kNotForSessions.end(), holds_it) &&
           std::none_of(kMadeBySandbox.begin(), kMadeBySandbox.end(), holds_it);
}

/// What every user may read: a guest is no other.
bool may_all_read(const TarEntry& entry) {
    return (entry.mode & S_IROTH) != 0;
}

std::pair<std::string, std::string> folder_and_name(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? std::pair(std::string(), path)
                                      : std::pair(path.substr(0, slash), path.substr(slash + 1));
}

/// Takes a file or a link away; false if a folder is there.
Result<bool> clear_place(int folder, const std::string& name) {
    struct stat there {};
    if (::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? Result<bool>(true)
                               : Error::from_errno(errno, "stat(" + name + ")");
    }
    if (S_ISDIR(there.st_mode)) {
        return false;
    }
    if (::unlinkat(folder, name.c_str(), 0) < 0) {
        return Error::from_errno(errno, "unlink(" + name + ")");
    }
    return true;
}

Status copy_bytes(int from, std::uint64_t offset, int to, std::uint64_t bytes) {
    constexpr std::uint64_t kPieceBytes = 1ULL << 20U;
    std::string piece(std::min(bytes, kPieceBytes), '\0');
    while (bytes > 0) {
        const std::size_t wanted = std::min<std::uint64_t>(bytes, piece.size());
        const ssize_t got = ::pread(from, piece.data(), wanted, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return Error::from_errno(got < 0 ? errno : EIO, "read(archive)");
        }
        const auto step = static_cast<std::size_t>(got);
        BOOST_OUTCOME_TRY(write_all(to, std::string_view(piece).substr(0, step)));
        offset += step;
        bytes -= step;
    }
    return ok();
}

}  // namespace

std::string place_in_system(std::string_view path) {
    std::string placed(path);
    for (const std::string_view folder : kMergedFolders) {
        if (is_in_folder(path, folder)) {
            placed = "usr/" + placed;
            break;
        }
    }
    return has_place(placed) ? placed : std::string();
}

Result<SystemTree> SystemTree::create(
    const std::string& directory, std::uint64_t bytes_max, std::size_t entries_max) {
    if (::mkdir(directory.c_str(), S_IRWXU) < 0) {
        return Error::from_errno(errno, "mkdir(" + directory + ")");
    }
    BOOST_OUTCOME_TRY(UniqueFd root, open_file(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    // Links of packages lead through these, as in a session.
    for (const std::string_view folder : kMergedFolders) {
        const std::string name(folder);
        if (::symlinkat(("usr/" + name).c_str(), root.get(), name.c_str()) < 0) {
            return Error::from_errno(errno, "symlink(" + name + ")");
        }
    }
    return SystemTree(std::move(root), bytes_max, entries_max);
}

Status SystemTree::count_entry() {
    if (++entries_ > entries_max_) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it would have more than " + std::to_string(entries_max_) +
                " files, folders and links of Debian's packages");
    }
    return ok();
}

Result<UniqueFd> SystemTree::open_beneath(const std::string& path, int flags) const {
    open_how how{};
    how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
    // Absolute links and ".." lead where they lead in a session: to the tree's own root at most.
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    UniqueFd found(static_cast<int>(
        ::syscall(SYS_openat2, root_.get(), path.empty() ? "." : path.c_str(), &how, sizeof(how))));
    if (!found) {
        return Error::from_errno(errno, "open(system/" + path + ")");
    }
    return found;
}

Result<UniqueFd> SystemTree::make_folders(const std::string& path) {
    auto whole = open_beneath(path, O_RDONLY | O_DIRECTORY);
    if (whole.has_value()) {
        return whole;
    }
    BOOST_OUTCOME_TRY(UniqueFd at, open_beneath("", O_RDONLY | O_DIRECTORY));
    for (std::size_t end = 0; end < path.size();) {
        const std::size_t begin = end == 0 ? 0 : end + 1;
        end = std::min(path.find('/', begin), path.size());
        const std::string part = path.substr(begin, end - begin);
        if (::mkdirat(at.get(), part.c_str(), S_IRWXU) == 0) {
            BOOST_OUTCOME_TRY(count_entry());
        } else if (errno != EEXIST) {
            return Error::from_errno(errno, "mkdir(system/" + path.substr(0, end) + ")");
        }
        auto next = open_beneath(path.substr(0, end), O_RDONLY | O_DIRECTORY);
        if (next.has_error()) {
            return Error(
                ErrorCode::kProtocol,
                "system/" + path.substr(0, end) + " is no folder",
                "Two of the packages do not go together.");
        }
        at = std::move(next).value();
        if (::fchmod(at.get(), 0755) < 0) {
            return Error::from_errno(errno, "chmod(system/" + path.substr(0, end) + ")");
        }
    }
    return at;
}

Status SystemTree::add_file(
    int archive, const TarEntry& entry, int folder, const std::string& name) {
    bytes_ += entry.bytes;
    if (bytes_ > bytes_max_) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it would have more than " + std::to_string(bytes_max_ >> 20U) + " MiB");
    }
    const UniqueFd to(::openat(
        folder,
        name.c_str(),
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
        S_IRUSR | S_IWUSR));
    if (!to) {
        return Error::from_errno(errno, "create(system/" + entry.path + ")");
    }
    BOOST_OUTCOME_TRY(copy_bytes(archive, entry.offset, to.get(), entry.bytes));
    const timespec times[2] = {{entry.modified, 0}, {entry.modified, 0}};
    const mode_t mode = (entry.mode & S_IXUSR) != 0 ? 0755 : 0644;
    if (::futimens(to.get(), times) < 0 || ::fchmod(to.get(), mode) < 0) {
        return Error::from_errno(errno, "chmod(system/" + entry.path + ")");
    }
    return ok();
}

/// Of what was left out there is no second name, too.
Status SystemTree::add_same(const TarEntry& entry, int folder, const std::string& name) {
    const auto [from_folder, from_name] = folder_and_name(place_in_system(entry.link));
    const auto from = open_beneath(from_folder, O_PATH | O_DIRECTORY);
    struct stat info {};
    if (from_name.empty() || from.has_error() ||
        ::fstatat(from.value().get(), from_name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(info.st_mode)) {
        return ok();
    }
    return ::linkat(from.value().get(), from_name.c_str(), folder, name.c_str(), 0) == 0
               ? Status(ok())
               : Error::from_errno(errno, "link(system/" + entry.path + ")");
}

Status SystemTree::add_one(int archive, const TarEntry& entry) {
    const std::string place = place_in_system(entry.path);
    if (place.empty() || entry.type == TarEntry::Type::kOther) {
        return ok();
    }
    if (entry.type == TarEntry::Type::kDirectory) {
        const auto made = make_folders(place);
        return made.has_error() ? Status(made.error()) : Status(ok());
    }
    if (entry.type != TarEntry::Type::kLink && !may_all_read(entry)) {
        return ok();
    }
    const auto [folder_path, name] = folder_and_name(place);
    if (folder_path.empty()) {
        return ok();  // a link for one of the merged folders, in packages of the base system
    }
    BOOST_OUTCOME_TRY(const UniqueFd folder, make_folders(folder_path));
    if (entry.type == TarEntry::Type::kSameFile && place_in_system(entry.link) == place) {
        return ok();
    }
    BOOST_OUTCOME_TRY(const bool is_free, clear_place(folder.get(), name));
    if (!is_free) {
        // dpkg keeps a folder where another package has a link to one (its manual, "links").
        return entry.type == TarEntry::Type::kLink
                   ? Status(ok())
                   : Error(ErrorCode::kProtocol, "system/" + place + " is a folder and a file");
    }
    BOOST_OUTCOME_TRY(count_entry());
    if (entry.type == TarEntry::Type::kSameFile) {
        return add_same(entry, folder.get(), name);
    }
    if (entry.type == TarEntry::Type::kFile) {
        return add_file(archive, entry, folder.get(), name);
    }
    return ::symlinkat(entry.link.c_str(), folder.get(), name.c_str()) == 0
               ? Status(ok())
               : Error::from_errno(errno, "symlink(system/" + place + ")");
}

Status SystemTree::add(int archive, const std::vector<TarEntry>& entries) {
    for (const TarEntry& entry : entries) {
        BOOST_OUTCOME_TRY(add_one(archive, entry));
    }
    return ok();
}

Status SystemTree::add_link(const std::string& path, const std::string& to) {
    const std::string place = place_in_system(std::string_view(path).substr(1));
    const auto [folder_path, name] = folder_and_name(place);
    if (folder_path.empty()) {
        return ok();  // of a manual page, or outside of what a session sees
    }
    BOOST_OUTCOME_TRY(const UniqueFd folder, make_folders(folder_path));
    BOOST_OUTCOME_TRY(count_entry());
    return ::symlinkat(to.c_str(), folder.get(), name.c_str()) == 0 || errno == EEXIST
               ? Status(ok())
               : Error::from_errno(errno, "symlink(system/" + place + ")");
}

bool SystemTree::holds(const std::string& path) const {
    return open_beneath(path, O_PATH).has_value();
}

Result<std::string> SystemTree::read(const std::string& path, std::size_t bytes_max) const {
    BOOST_OUTCOME_TRY(const UniqueFd file, open_beneath(path, O_RDONLY | O_NONBLOCK));
    return read_file("/proc/self/fd/" + std::to_string(file.get()), bytes_max);
}

std::vector<std::string> SystemTree::names_in(const std::string& folder) const {
    std::vector<std::string> names;
    const auto opened = open_beneath(folder, O_RDONLY | O_DIRECTORY);
    if (opened.has_error()) {
        return names;
    }
    std::error_code error;
    fs::directory_iterator at("/proc/self/fd/" + std::to_string(opened.value().get()), error);
    for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
        names.push_back(at->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace cellkeep::environments
