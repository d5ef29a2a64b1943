// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/tree_writer.hpp"

#include "kernel-manager/image/file_digest.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"

#include <climits>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

namespace cellkeep::image {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kDirectoryMode = 0755;
constexpr mode_t kProgramMode = 0555;
constexpr mode_t kFileMode = 0444;

/// What every user of the host may read: a guest may as well.
bool is_public(const struct stat& info) {
    const mode_t needed = S_ISDIR(info.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
    return (info.st_mode & needed) == needed;
}

Status pump(int from, int to, protocol::Sha256& digest, std::uint64_t& bytes) {
    std::vector<char> piece(1ULL << 20U);
    while (true) {
        const ssize_t got = ::read(from, piece.data(), piece.size());
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return Error::from_errno(errno, "read");
        }
        if (got == 0) {
            return ok();
        }
        const std::string_view part(piece.data(), static_cast<std::size_t>(got));
        digest.update(part);
        BOOST_OUTCOME_TRY(write_all(to, part));
        bytes += part.size();
        if (bytes > kImageBytesMax) {
            return Error(ErrorCode::kLimitExceeded, "the image would be larger than its bound");
        }
    }
}

mode_t mode_of_copy(const struct stat& source) {
    return (source.st_mode & S_IXUSR) != 0 ? kProgramMode : kFileMode;
}

bool has_vanished(int error) {
    return error == ENOENT || error == ENOTDIR;
}

}  // namespace

Result<TreeWriter> TreeWriter::create(const std::string& directory) {
    BOOST_OUTCOME_TRY(UniqueFd root, open_file(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (::fchmod(root.get(), kDirectoryMode) < 0) {
        return Error::from_errno(errno, "chmod(" + directory + ")");
    }
    return TreeWriter(std::move(root));
}

Status TreeWriter::make_directory(const std::string& target) {
    struct stat there {};
    if (::fstatat(root_.get(), target.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISDIR(there.st_mode) && ::unlinkat(root_.get(), target.c_str(), 0) < 0) {
        return Error::from_errno(errno, "remove(image/" + target + ")");
    }
    // mkdirat(2) takes the umask's bits away: of `cellkeep kernel`, or of an operator.
    if ((::mkdirat(root_.get(), target.c_str(), kDirectoryMode) < 0 && errno != EEXIST) ||
        ::fchmodat(root_.get(), target.c_str(), kDirectoryMode, 0) < 0) {
        return Error::from_errno(errno, "mkdir(image/" + target + ")");
    }
    return note(target, Entry{});
}

Status TreeWriter::note(const std::string& target, Entry entry) {
    bytes_ += entry.bytes;
    if (report_ && bytes_ - told_ >= report_step_) {
        told_ = bytes_;
        report_(bytes_);
    }
    manifest_.entries.emplace(target, std::move(entry));
    if (manifest_.entries.size() > kImageEntriesMax || bytes_ > kImageBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "the image would hold more than " + std::to_string(kImageEntriesMax) + " entries or " +
                std::to_string(kImageBytesMax >> 30U) + " GiB");
    }
    return ok();
}

Result<bool> TreeWriter::make_parents(const std::string& target) {
    for (auto slash = target.find('/'); slash != std::string::npos;
         slash = target.find('/', slash + 1)) {
        const std::string parent = target.substr(0, slash);
        if (const auto known = manifest_.entries.find(parent); known != manifest_.entries.end()) {
            if (known->second.type != EntryType::kDirectory) {
                return false;
            }
            continue;
        }
        BOOST_OUTCOME_TRY(make_directory(parent));
    }
    return true;
}

void TreeWriter::watch(std::uint64_t step, std::function<void(std::uint64_t bytes)> report) {
    report_step_ = step;
    told_ = bytes_;
    report_ = std::move(report);
}

Result<std::optional<Entry>> TreeWriter::take_over(
    const struct stat& source, const std::string& target) {
    struct stat there {};
    if (::fstatat(root_.get(), target.c_str(), &there, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? Result<std::optional<Entry>>(std::nullopt)
                               : Error::from_errno(errno, "stat(image/" + target + ")");
    }
    // The rights are set last.
    if (S_ISREG(there.st_mode) && (there.st_mode & ALLPERMS) == mode_of_copy(source) &&
        there.st_size == source.st_size && there.st_mtim.tv_sec == source.st_mtim.tv_sec) {
        const UniqueFd file(
            ::openat(root_.get(), target.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (!file) {
            return Error::from_errno(errno, "open(image/" + target + ")");
        }
        Entry entry;
        entry.type = EntryType::kFile;
        entry.executable = mode_of_copy(source) == kProgramMode;
        entry.bytes = static_cast<std::uint64_t>(there.st_size);
        entry.modified = there.st_mtim.tv_sec;
        BOOST_OUTCOME_TRY(entry.content, sha256_of_file(file.get()));
        return std::optional(std::move(entry));
    }
    if (::unlinkat(root_.get(), target.c_str(), 0) < 0) {
        return Error::from_errno(errno, "remove(image/" + target + ")");
    }
    return std::optional<Entry>();
}

Status TreeWriter::copy_file(const std::string& source, const std::string& target) {
    const UniqueFd from(::open(source.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    if (!from || ::fstat(from.get(), &info) < 0) {
        return has_vanished(errno) ? Status(ok())
                                   : Error::from_errno(errno, "open(" + source + ")");
    }
    if (!S_ISREG(info.st_mode) || !is_public(info)) {
        return ok();
    }
    BOOST_OUTCOME_TRY(auto copied, take_over(info, target));
    if (copied) {
        return note(target, std::move(*copied));
    }
    const UniqueFd to(::openat(
        root_.get(),
        target.c_str(),
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
        S_IRUSR));
    if (!to) {
        return Error::from_errno(errno, "create(image/" + target + ")");
    }
    Entry entry;
    entry.type = EntryType::kFile;
    entry.executable = mode_of_copy(info) == kProgramMode;
    entry.modified = info.st_mtim.tv_sec;
    protocol::Sha256 digest;
    BOOST_OUTCOME_TRY(with_context(pump(from.get(), to.get(), digest, entry.bytes), source));
    entry.content = digest.finish();
    const timespec times[2] = {{info.st_mtim.tv_sec, 0}, {info.st_mtim.tv_sec, 0}};
    // The rights come last: a file that has them is complete.
    if (::futimens(to.get(), times) < 0 || ::fchmod(to.get(), mode_of_copy(info)) < 0) {
        return Error::from_errno(errno, "chmod(image/" + target + ")");
    }
    return note(target, std::move(entry));
}

Status TreeWriter::copy_link(const std::string& source, const std::string& target) {
    std::string to(PATH_MAX, '\0');
    const ssize_t length = ::readlink(source.c_str(), to.data(), to.size());
    if (length <= 0) {
        return length == 0 || has_vanished(errno) || errno == EINVAL
                   ? Status(ok())
                   : Error::from_errno(errno, "readlink(" + source + ")");
    }
    to.resize(static_cast<std::size_t>(length));
    if (::unlinkat(root_.get(), target.c_str(), 0) < 0 && errno != ENOENT) {
        return Error::from_errno(errno, "remove(image/" + target + ")");
    }
    if (::symlinkat(to.c_str(), root_.get(), target.c_str()) < 0) {
        return Error::from_errno(errno, "symlink(image/" + target + ")");
    }
    Entry entry;
    entry.type = EntryType::kLink;
    entry.content = std::move(to);
    return note(target, std::move(entry));
}

Status TreeWriter::add_found(
    const std::string& source, const struct stat& info, const std::string& target) {
    if (!is_clean_relative(target)) {
        return Error(ErrorCode::kInvalidArgument, "image: the path '" + target + "' is not clean");
    }
    BOOST_OUTCOME_TRY(const bool reachable, make_parents(target));
    if (!reachable || holds(target)) {
        return ok();
    }
    if (S_ISLNK(info.st_mode)) {
        return copy_link(source, target);
    }
    if (!is_public(info)) {
        return ok();
    }
    if (S_ISREG(info.st_mode)) {
        return copy_file(source, target);
    }
    if (S_ISDIR(info.st_mode)) {
        return make_directory(target);
    }
    return ok();
}

Status TreeWriter::add_entry(const std::string& source, const std::string& target) {
    struct stat info {};
    if (::lstat(source.c_str(), &info) < 0) {
        return has_vanished(errno) ? Status(ok())
                                   : Error::from_errno(errno, "lstat(" + source + ")");
    }
    return add_found(source, info, target);
}

Status TreeWriter::add_file(const std::string& source, const std::string& target) {
    std::error_code error;
    const fs::path real = fs::canonical(source, error);
    return error ? Status(ok()) : add_entry(real.string(), target);
}

Status TreeWriter::add_tree(const std::string& source, const std::string& target) {
    std::error_code error;
    const fs::path real = fs::canonical(source, error);
    if (error) {
        return ok();
    }
    BOOST_OUTCOME_TRY(add_entry(real.string(), target));
    fs::recursive_directory_iterator at(real, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
        const std::string inside = target + at->path().string().substr(real.string().size());
        struct stat info {};
        if (::lstat(at->path().c_str(), &info) < 0) {
            continue;  // It has gone meanwhile.
        }
        if (S_ISDIR(info.st_mode) && !is_public(info)) {
            at.disable_recursion_pending();
            continue;
        }
        BOOST_OUTCOME_TRY(add_found(at->path().string(), info, inside));
    }
    if (error && !has_vanished(error.value())) {
        return Error::from_errno(error.value(), "readdir(" + source + ")");
    }
    return ok();
}

Status TreeWriter::remove_others() {
    // By descriptor: the tree is where it was, whatever its name is.
    const fs::path root = "/proc/self/fd/" + std::to_string(root_.get());
    const std::size_t above = root.string().size() + 1;
    std::error_code error;
    std::vector<fs::path> others;
    fs::recursive_directory_iterator at(root, error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
        if (!holds(at->path().string().substr(above))) {
            at.disable_recursion_pending();
            others.push_back(at->path());
        }
    }
    for (const fs::path& other : others) {
        if (!error) {
            fs::remove_all(other, error);
        }
    }
    return error ? Error::from_errno(error.value(), "remove what an interrupted build left")
                 : Status(ok());
}

}  // namespace cellkeep::image
