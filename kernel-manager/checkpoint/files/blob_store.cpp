// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/blob_store.hpp"

#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace cellkeep::checkpoint {

namespace {

/// Blobs begin at one, so that the room of each can be given back alone.
constexpr std::uint64_t kBlockBytes = 4096;

std::uint64_t whole_blocks(std::uint64_t bytes) {
    return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

Error store_failure(int error, const char* operation) {
    const Error plain = Error::from_errno(error, std::string("checkpoint: files: ") + operation);
    return {ErrorCode::kUnavailable, plain.message(), "Is the disk of the state directory full?"};
}

Error no_blobs(const std::string& why) {
    return {ErrorCode::kProtocol, "passed contents of files: " + why};
}

bool is_digest(const std::string& text) {
    constexpr std::size_t kDigits = 64;
    return text.size() == kDigits && std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

/// The end of what the file holds: they begin at whole blocks, lie behind one another and not in
/// one another, and are there.
Result<std::uint64_t> check_places(const PassedBlobs& passed, std::uint64_t file_bytes) {
    std::map<std::uint64_t, std::uint64_t> ends;  // by their beginnings
    std::uint64_t all = 0;
    for (const auto& [digest, blob] : passed.blobs) {
        const bool fits = is_digest(digest) && blob.offset % kBlockBytes == 0;
        if (fits && blob.bytes == 0) {
            continue;  // nothing lies there
        }
        if (!fits || blob.bytes > file_bytes || blob.offset > file_bytes - blob.bytes) {
            return no_blobs("one that cannot be in the file");
        }
        all += blob.bytes;
        if (!ends.emplace(blob.offset, blob.offset + blob.bytes).second) {
            return no_blobs("two at one place");
        }
    }
    std::uint64_t end = 0;
    for (const auto& [begin, behind] : ends) {
        if (begin < end) {
            return no_blobs("two at one place");
        }
        end = whole_blocks(behind);
    }
    return all > passed.bytes ? Result<std::uint64_t>(no_blobs("more than was counted"))
                              : Result<std::uint64_t>(std::max(end, whole_blocks(file_bytes)));
}

}  // namespace

Result<UniqueFd> BlobSpace::make_file() const {
    UniqueFd file(::open(directory_.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (!file && (errno == EOPNOTSUPP || errno == EISDIR)) {  // of a file system without O_TMPFILE
        std::string name = directory_ + "/.cellkeep-blobs-XXXXXX";
        file.reset(::mkostemp(name.data(), O_CLOEXEC));
        if (file) {
            (void)::unlink(name.c_str());  // Ignored: then it is a file with a name
        }
    }
    if (!file) {
        return store_failure(errno, "open");
    }
    return file;
}

bool BlobSpace::take(std::uint64_t bytes) {
    std::uint64_t used = used_;
    do {
        if (bytes > bytes_max_ || used > bytes_max_ - bytes) {
            return false;
        }
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
}

BlobStore::~BlobStore() {
    abandon();
    space_->give_back(bytes_);
}

Status BlobStore::begin(std::uint64_t bytes) {
    abandon();
    if (bytes > bytes_max_ || bytes_ > bytes_max_ - bytes || !space_->take(bytes)) {
        return Error(ErrorCode::kLimitExceeded, "checkpoint: files: there is no room for more");
    }
    coming_ = std::make_unique<Coming>();
    coming_->taken = bytes;
    if (!file_) {
        auto made = space_->make_file();
        if (made.has_error()) {
            abandon();
            return std::move(made).error();
        }
        file_ = std::move(made).value();
    }
    return ok();
}

Status BlobStore::append(std::string_view bytes) {
    CELLKEEP_CHECK(coming_ && bytes.size() <= coming_->taken - coming_->written);
    if (std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == '\0'; })) {
        coming_->written += bytes.size();  // nothing is there yet: a hole reads as zeros
        return ok();
    }
    while (!bytes.empty()) {
        const auto at = static_cast<off_t>(end_ + coming_->written);
        const ssize_t wrote = ::pwrite(file_.get(), bytes.data(), bytes.size(), at);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return store_failure(errno, "write");
        }
        coming_->written += static_cast<std::uint64_t>(wrote);
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return ok();
}

Status BlobStore::finish(const std::string& digest) {
    CELLKEEP_CHECK(coming_ != nullptr);
    if (const auto known = blobs_.find(digest); known != blobs_.end()) {
        ++known->second.holders;
        abandon();
        return ok();
    }
    const std::uint64_t bytes = coming_->written;
    const auto new_end = static_cast<off_t>(end_ + whole_blocks(bytes));
    if (::ftruncate(file_.get(), new_end) < 0) {
        return store_failure(errno, "truncate");
    }
    blobs_.emplace(digest, Blob{end_, bytes, 1});
    end_ += whole_blocks(bytes);
    bytes_ += bytes;
    coming_->taken -= bytes;  // the rest was not needed
    coming_->written = 0;
    abandon();
    return ok();
}

void BlobStore::abandon() {
    if (!coming_) {
        return;
    }
    if (coming_->written > 0 && ::ftruncate(file_.get(), static_cast<off_t>(end_)) < 0) {
        end_ += whole_blocks(coming_->written);  // the next one begins where nothing is
    }
    space_->give_back(coming_->taken);
    coming_.reset();
}

void BlobStore::drop(const std::string& digest) {
    const auto found = blobs_.find(digest);
    CELLKEEP_CHECK(found != blobs_.end());
    if (--found->second.holders > 0) {
        return;
    }
    const Blob blob = found->second;
    blobs_.erase(found);
    if (blobs_.empty() && !coming_) {
        end_ = 0;
        if (::ftruncate(file_.get(), 0) == 0) {
            const std::uint64_t all = bytes_.exchange(0);
            space_->give_back(all);
        }
        return;
    }
    const std::uint64_t room = whole_blocks(blob.bytes);
    const bool is_last = blob.offset + room == end_ && !coming_;
    bool freed = true;
    if (is_last) {
        freed = ::ftruncate(file_.get(), static_cast<off_t>(blob.offset)) == 0;
        end_ = freed ? blob.offset : end_;
    } else if (room > 0) {
        freed = ::fallocate(
                    file_.get(),
                    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(blob.offset),
                    static_cast<off_t>(room)) == 0;
    }
    if (freed) {  // a file system that cannot do it keeps them until the last one goes
        bytes_ -= blob.bytes;
        space_->give_back(blob.bytes);
    }
}

std::optional<std::uint64_t> BlobStore::bytes_of(const std::string& digest) const {
    const auto found = blobs_.find(digest);
    return found == blobs_.end() ? std::nullopt : std::optional(found->second.bytes);
}

bool BlobStore::are_all_held() const {
    return std::all_of(
        blobs_.begin(), blobs_.end(), [](const auto& one) { return one.second.holders > 0; });
}

PassedBlobs BlobStore::pass_on() {
    CELLKEEP_CHECK(!coming_);
    PassedBlobs passed;
    passed.file = std::move(file_);
    passed.bytes = bytes_.exchange(0);
    for (const auto& [digest, blob] : std::exchange(blobs_, {})) {
        passed.blobs.emplace(digest, PassedBlobs::Blob{blob.offset, blob.bytes});
    }
    end_ = 0;
    space_->give_back(passed.bytes);
    return passed;
}

Status BlobStore::go_on(PassedBlobs passed) {
    CELLKEEP_CHECK(blobs_.empty() && !coming_);
    struct stat about {};
    if (!passed.file) {
        return passed.blobs.empty() ? Status(ok()) : Status(no_blobs("there is no file"));
    }
    if (::fstat(passed.file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return no_blobs("no file");
    }
    if (passed.bytes > bytes_max_) {
        return no_blobs("more than a session keeps");
    }
    BOOST_OUTCOME_TRY(end_, check_places(passed, static_cast<std::uint64_t>(about.st_size)));
    file_ = std::move(passed.file);
    for (const auto& [digest, blob] : passed.blobs) {
        blobs_.emplace(digest, Blob{blob.offset, blob.bytes, 0});
    }
    bytes_ = passed.bytes;
    space_->take_over(passed.bytes);
    return ok();
}

Result<std::size_t> BlobStore::read(
    const std::string& digest, std::uint64_t offset, std::span<char> into) const {
    const auto found = blobs_.find(digest);
    if (found == blobs_.end()) {
        return Error(ErrorCode::kNotFound, "checkpoint: files: the contents are not there");
    }
    const Blob& blob = found->second;
    const std::uint64_t wanted =
        std::min<std::uint64_t>(into.size(), blob.bytes - std::min(offset, blob.bytes));
    std::size_t done = 0;
    while (done < wanted) {
        const ssize_t got = ::pread(
            file_.get(),
            into.data() + done,
            wanted - done,
            static_cast<off_t>(blob.offset + offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return store_failure(got < 0 ? errno : EIO, "read");
        }
        done += static_cast<std::size_t>(got);
    }
    return done;
}

}  // namespace cellkeep::checkpoint
