// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/inputs_directory.hpp"

#include "kernel-manager/session/completion.hpp"
#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"

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

constexpr std::size_t kReadBytes = 256ULL << 10U;
constexpr std::size_t kSliceBytes = 4ULL << 20U;

Error refuse(const char* field, const std::string& why) {
    return {ErrorCode::kInvalidArgument, std::string(field) + ": " + why};
}

Error wrong_digest(const std::string& found) {
    return refuse("sha256", "the file's is " + found);
}

/// Up to buffer.size() bytes at offset; 0 at the end and for what cannot be read.
std::size_t read_at(int fd, std::uint64_t offset, std::string& buffer) {
    ssize_t got = 0;
    do {
        got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

/// A file that the work thread reads.
struct Reading {
    UniqueFd fd;
    protocol::Sha256 hash;
    std::uint64_t offset = 0;
    std::string buffer;

    WorkThread::Slice advance() {
        buffer.resize(kReadBytes);
        for (std::size_t done = 0; done < kSliceBytes;) {
            const std::size_t got = read_at(fd.get(), offset, buffer);
            if (got == 0) {
                return WorkThread::Slice::kDone;
            }
            hash.update({buffer.data(), got});
            offset += got;
            done += got;
        }
        return WorkThread::Slice::kMore;
    }
};

}  // namespace

bool has_references(const std::vector<InputFile>& files) {
    return std::any_of(
        files.begin(), files.end(), [](const InputFile& file) { return !file.from.empty(); });
}

Error no_inputs_directory() {
    return refuse("from", "this server has no inputs directory (cellkeep serve --inputs)");
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
        return refuse("from", "there is no such file in the inputs directory");
    }
    if (!S_ISREG(info.st_mode)) {
        return refuse("from", "is not a plain file");
    }
    return OpenedInput{std::move(fd), sandbox::file_state(info), info.st_dev};
}

boost::asio::awaitable<std::string> InputsDirectory::digest(
    std::shared_ptr<InputsDirectory> self,
    boost::asio::io_context& io,
    std::shared_ptr<WorkThread> thread,
    OpenedInput input) {
    const sandbox::FileState& state = input.state;
    const Version version(input.device, state.inode, state.bytes, state.modified, state.changed);
    if (const auto known = self->digests_.find(version); known != self->digests_.end()) {
        co_return known->second;
    }
    const auto reading = std::make_shared<Reading>();
    reading->fd = std::move(input.fd);
    const auto done = std::make_shared<Completion<std::string>>(io);
    thread->run([reading, done, work = boost::asio::make_work_guard(io)] {
        if (reading->advance() == WorkThread::Slice::kMore) {
            return WorkThread::Slice::kMore;
        }
        boost::asio::post(
            work.get_executor(), [done, found = reading->hash.finish()] { done->set(found); });
        return WorkThread::Slice::kDone;
    });
    std::string found = co_await Completion<std::string>::wait(done);
    if (self->digests_.size() >= kInputDigestsMax) {
        self->digests_.clear();
    }
    self->digests_.emplace(version, found);
    co_return found;
}

boost::asio::awaitable<Status> InputsDirectory::check(
    std::shared_ptr<InputsDirectory> self,
    boost::asio::io_context& io,
    std::shared_ptr<WorkThread> thread,
    const std::vector<InputFile>& files) {
    std::size_t mounts = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const InputFile& file = files[i];
        if (file.from.empty()) {
            continue;
        }
        const std::string where = "files/" + std::to_string(i) + "/";
        auto input = self->open_file(file.from);
        if (input.has_error()) {
            co_return Error(input.error().code(), where + input.error().message());
        }
        if (++mounts > sandbox::kInputsMax) {
            co_return Error(
                ErrorCode::kInvalidArgument,
                where + "from: more than " + std::to_string(sandbox::kInputsMax) + " files");
        }
        if (file.sha256.empty()) {
            continue;
        }
        const std::string found = co_await digest(self, io, thread, std::move(input).value());
        if (found != file.sha256) {
            co_return Error(ErrorCode::kInvalidArgument, where + wrong_digest(found).message());
        }
    }
    co_return ok();
}

std::vector<sandbox::InputMount> InputsDirectory::take_mounts(std::vector<InputFile>& files) const {
    std::vector<sandbox::InputMount> mounts;
    for (const InputFile& file : files) {
        if (!file.from.empty()) {
            mounts.push_back({path_ + "/" + file.from, file.path});
        }
    }
    std::erase_if(files, [](const InputFile& file) { return !file.from.empty(); });
    return mounts;
}

Status InputsDirectory::copy(const InputFile& file, const sandbox::Workspace& workspace) const {
    BOOST_OUTCOME_TRY(const auto input, open_file(file.from));
    const std::string too_long = "is longer than " + std::to_string(limits::kInputCopyBytesMax) +
                                 " bytes, which an execution copies at most; create the session "
                                 "with it instead";
    if (input.state.bytes > limits::kInputCopyBytesMax) {
        return refuse("from", too_long);
    }
    BOOST_OUTCOME_TRY(auto upload, workspace.begin_upload(file.path));
    protocol::Sha256 hash;
    std::string buffer(kReadBytes, '\0');
    std::uint64_t offset = 0;
    while (const std::size_t got = read_at(input.fd.get(), offset, buffer)) {
        offset += got;
        if (offset > limits::kInputCopyBytesMax) {
            return refuse("from", too_long);  // it grows while it is read
        }
        hash.update({buffer.data(), got});
        BOOST_OUTCOME_TRY(upload.append({buffer.data(), got}));
    }
    // Of what was copied, whatever became of the file meanwhile.
    if (const std::string found = hash.finish(); !file.sha256.empty() && found != file.sha256) {
        return wrong_digest(found);
    }
    return upload.commit();
}

}  // namespace cellkeep::session
