// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/inputs_directory.hpp"

#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace cellkeep::session {

namespace {

constexpr std::size_t kInputReadBytes = 256ULL << 10U;
constexpr std::size_t kSliceBytes = 4ULL << 20U;

Error refuse_input(const char* field, const std::string& why) {
    return Error::in_field(ErrorCode::kInvalidArgument, field, why);
}

Error wrong_digest(const std::string& found) {
    return refuse_input("sha256", "the file's is " + found);
}

/// Up to buffer.size() bytes at offset; 0 at the end.
Result<std::size_t> read_at(int fd, std::uint64_t offset, std::string& buffer) {
    ssize_t got = 0;
    do {
        got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return refuse_input("from", Error::from_errno(errno, "cannot be read").message());
    }
    return static_cast<std::size_t>(got);
}

std::string too_long() {
    return "is longer than " + std::to_string(limits::kInputCopyBytesMax) +
           " bytes, which an execution copies at most; create the session with it instead";
}

/// A file's contents are all of it: neither a broken disk nor a change meanwhile may make them
/// less.
Status check_length(std::uint64_t read, std::uint64_t expected) {
    if (read != expected) {
        return refuse_input(
            "from",
            "changed while it was read: " + std::to_string(read) + " bytes of " +
                std::to_string(expected));
    }
    return ok();
}

/// A file that the work thread reads.
struct Reading {
    UniqueFd fd;
    std::uint64_t bytes = 0;  // when it was opened
    protocol::Sha256 hash;
    std::uint64_t offset = 0;
    std::string buffer;

    /// True at the end.
    Result<bool> advance() {
        buffer.resize(kInputReadBytes);
        for (std::size_t done = 0; done < kSliceBytes;) {
            BOOST_OUTCOME_TRY(const std::size_t got, read_at(fd.get(), offset, buffer));
            if (got == 0) {
                BOOST_OUTCOME_TRY(check_length(offset, bytes));
                return true;
            }
            hash.update({buffer.data(), got});
            offset += got;
            done += got;
        }
        return false;
    }
};

}  // namespace

bool has_references(const std::vector<InputFile>& files) {
    return std::any_of(
        files.begin(), files.end(), [](const InputFile& file) { return !file.from.empty(); });
}

Error no_inputs_directory() {
    return refuse_input("from", "this server has no inputs directory (cellkeep serve --inputs)");
}

Result<std::shared_ptr<InputsDirectory>> InputsDirectory::open(const std::string& path) {
    std::error_code failed;
    // Absolute: what is mounted is named by it.
    const std::string absolute = std::filesystem::canonical(path, failed).string();
    if (failed) {
        return Error(ErrorCode::kNotFound, "inputs directory " + path + ": " + failed.message());
    }
    UniqueFd directory(::open(absolute.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory) {
        return Error(
            ErrorCode::kInvalidArgument,
            Error::from_errno(errno, "inputs directory " + absolute).message());
    }
    return std::shared_ptr<InputsDirectory>(new InputsDirectory(absolute, std::move(directory)));
}

Result<InputsDirectory::OpenedInput> InputsDirectory::open_file(const std::string& name) const {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    UniqueFd fd(static_cast<int>(
        ::syscall(SYS_openat2, directory_.get(), name.c_str(), &how, sizeof(how))));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) < 0) {
        return refuse_input("from", "there is no such file in the inputs directory");
    }
    if (!S_ISREG(info.st_mode)) {
        return refuse_input("from", "is not a plain file");
    }
    return OpenedInput{std::move(fd), sandbox::file_state(info), info.st_dev};
}

InputsDirectory::Version InputsDirectory::version_of(
    const sandbox::FileState& state, std::uint64_t device) {
    return {device, state.inode, state.bytes, state.modified, state.changed};
}

boost::asio::awaitable<Result<std::string>> InputsDirectory::digest(
    std::shared_ptr<InputsDirectory> self,
    boost::asio::io_context& io,
    std::shared_ptr<WorkThread> thread,
    OpenedInput input) {
    const sandbox::FileState& state = input.state;
    const Version version = version_of(state, input.device);
    if (const auto known = self->digests_.find(version); known != self->digests_.end()) {
        co_return known->second;
    }
    const auto reading = std::make_shared<Reading>();
    reading->fd = std::move(input.fd);
    reading->bytes = state.bytes;
    using Found = Result<std::string>;
    const auto done = std::make_shared<Completion<Found>>(io);
    // The thread hands its part of done over: its timer may only go where io runs.
    thread->run([reading, signal = done, work = boost::asio::make_work_guard(io)]() mutable {
        const auto whole = reading->advance();
        if (whole.has_value() && !whole.value()) {
            return WorkThread::Slice::kMore;
        }
        Found found = whole.has_error() ? Found(whole.error()) : Found(reading->hash.finish());
        const auto executor = work.get_executor();
        boost::asio::post(
            executor,
            [signal = std::move(signal), found = std::move(found), held = std::move(work)] {
                signal->set(found);
            });
        return WorkThread::Slice::kDone;
    });
    Found outcome = co_await Completion<Found>::wait(done);
    BOOST_OUTCOME_CO_TRY(std::string found, std::move(outcome));
    if (self->digests_.size() >= kInputDigestsMax) {
        self->digests_.clear();
    }
    self->digests_.emplace(version, found);
    co_return found;
}

boost::asio::awaitable<Result<InputsDirectory::Checked>> InputsDirectory::check(
    std::shared_ptr<InputsDirectory> self,
    boost::asio::io_context& io,
    std::shared_ptr<WorkThread> thread,
    const std::vector<InputFile>& files) {
    Checked checked;
    std::size_t mounts = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const InputFile& file = files[i];
        if (file.from.empty()) {
            continue;
        }
        const std::string where = "files/" + std::to_string(i);
        auto input = self->open_file(file.from);
        if (input.has_error()) {
            co_return std::move(input).error().within_field(where);
        }
        if (++mounts > sandbox::kInputsMax) {
            co_return Error::in_field(
                ErrorCode::kInvalidArgument,
                where + "/from",
                "more than " + std::to_string(sandbox::kInputsMax) + " files");
        }
        if (file.sha256.empty()) {
            continue;
        }
        checked.emplace(i, version_of(input.value().state, input.value().device));
        const auto found = co_await digest(self, io, thread, std::move(input).value());
        if (found.has_error()) {
            co_return Error(found.error()).within_field(where);
        }
        if (found.value() != file.sha256) {
            co_return wrong_digest(found.value()).within_field(where);
        }
    }
    co_return checked;
}

std::vector<sandbox::InputMount> InputsDirectory::mounts_of(
    const std::vector<InputFile>& files) const {
    std::vector<sandbox::InputMount> mounts;
    for (const InputFile& file : files) {
        if (!file.from.empty()) {
            mounts.push_back({path_ + "/" + file.from, file.path});
        }
    }
    return mounts;
}

Status InputsDirectory::check_mounted(
    const std::vector<InputFile>& files,
    const Checked& checked,
    const sandbox::Workspace& workspace) {
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (files[i].from.empty() || files[i].sha256.empty()) {
            continue;
        }
        open_how how{};
        how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
        // A mount is what is looked for here.
        how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
        const UniqueFd fd(static_cast<int>(::syscall(
            SYS_openat2, workspace.directory_fd(), files[i].path.c_str(), &how, sizeof(how))));
        struct stat info {};
        if (!fd || ::fstat(fd.get(), &info) < 0) {
            return Error::from_errno(errno, "openat2")
                .within_field("files/" + std::to_string(i) + "/path");
        }
        const auto right = checked.find(i);
        if (right == checked.end() ||
            right->second != version_of(sandbox::file_state(info), info.st_dev)) {
            return Error::in_field(
                ErrorCode::kInvalidArgument,
                "files/" + std::to_string(i) + "/from",
                "changed while the session was made; try again");
        }
    }
    return ok();
}

Result<InputsDirectory::OpenedInput> InputsDirectory::open_for_copy(const InputFile& file) const {
    BOOST_OUTCOME_TRY(auto input, open_file(file.from));
    if (input.state.bytes > limits::kInputCopyBytesMax) {
        return refuse_input("from", too_long());
    }
    return input;
}

Status InputsDirectory::check_copy(const InputFile& file) const {
    BOOST_OUTCOME_TRY(open_for_copy(file));
    return ok();
}

Result<InputsDirectory::Copy> InputsDirectory::begin_copy(
    const InputFile& file, const sandbox::Workspace& workspace) const {
    BOOST_OUTCOME_TRY(auto input, open_for_copy(file));
    BOOST_OUTCOME_TRY(auto upload, workspace.begin_upload(file.path));
    return Copy(std::move(input), std::move(upload), file.sha256);
}

InputsDirectory::Copy::Copy(
    OpenedInput input, sandbox::Workspace::Upload upload, std::string sha256)
    : input_(std::move(input)), upload_(std::move(upload)), sha256_(std::move(sha256)) {}

Result<bool> InputsDirectory::Copy::advance() {
    buffer_.resize(kInputReadBytes);
    for (std::size_t done = 0; done < kSliceBytes;) {
        BOOST_OUTCOME_TRY(const std::size_t got, read_at(input_.fd.get(), offset_, buffer_));
        if (got == 0) {
            BOOST_OUTCOME_TRY(check_length(offset_, input_.state.bytes));
            // Of what was copied, whatever became of the file meanwhile.
            if (const std::string found = hash_.finish(); !sha256_.empty() && found != sha256_) {
                return wrong_digest(found);
            }
            return true;
        }
        offset_ += got;
        done += got;
        if (offset_ > limits::kInputCopyBytesMax) {
            return refuse_input("from", too_long());  // it grows while it is read
        }
        hash_.update({buffer_.data(), got});
        BOOST_OUTCOME_TRY(upload_.append({buffer_.data(), got}));
    }
    return false;
}

}  // namespace cellkeep::session
