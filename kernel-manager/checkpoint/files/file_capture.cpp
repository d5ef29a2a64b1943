// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/file_capture.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cellkeep::checkpoint {

using sandbox::EntryKind;
using sandbox::FileState;

namespace {

constexpr std::size_t kCaptureReadBytes = 256ULL << 10U;

}  // namespace

FileCapture::FileCapture(std::shared_ptr<FileVersions> versions)
    : versions_(std::move(versions)), walker_(versions_->workspace(), "") {}

void FileCapture::give_up() {
    reading_.reset();
    versions_->blobs().abandon();
    versions_->drop(std::exchange(manifest_, {}));
}

Result<FileCapture::Step> FileCapture::advance() {
    slice_bytes_ = 0;
    for (std::size_t entries = 0; entries < kSliceEntries && slice_bytes_ < kSliceBytes;) {
        if (!path_.has_value()) {
            ++entries;
        }
        BOOST_OUTCOME_TRY(
            const Step step,
            reading_.has_value() ? read_on()
            : path_.has_value()  ? open()
                                 : look_at_next());
        if (step != Step::kMore) {
            return step;
        }
    }
    return Step::kMore;
}

Result<FileCapture::Step> FileCapture::look_at_next() {
    const auto entry = walker_.next();
    if (!entry.has_value()) {
        manifest_.complete = walker_.complete();
        versions_->start_over();
        return Step::kDone;
    }
    if (versions_->ignores(entry->path)) {
        return Step::kMore;
    }
    path_ = entry->path;
    reads_ = 0;
    switch (entry->state.kind) {
        case EntryKind::kDirectory:
            keep(entry->state, {});
            return Step::kMore;
        case EntryKind::kLink: {
            auto target = versions_->workspace().read_link(entry->path);
            if (target.has_error()) {
                return leave(Unkept::kChanging);
            }
            keep(entry->state, std::move(target).value());
            return Step::kMore;
        }
        case EntryKind::kOther:
            return leave(Unkept::kKind);
        case EntryKind::kFile:
            break;
    }
    if (const std::string* digest = versions_->find(entry->path, entry->state)) {
        versions_->blobs().hold(*digest);
        std::string known = *digest;
        versions_->note(entry->path, entry->state, known);
        keep(entry->state, std::move(known));
    }
    return Step::kMore;  // or it is opened next
}

Result<FileCapture::Step> FileCapture::open() {
    auto file = versions_->workspace().open_for_reading(*path_);
    if (file.has_error()) {
        if (file.error().code() == ErrorCode::kNotFound) {
            path_.reset();  // the guest has removed it
            return Step::kMore;
        }
        return leave(
            file.error().code() == ErrorCode::kPermissionDenied ? Unkept::kUnreadable
                                                                : Unkept::kChanging);
    }
    if (file.value().bytes > kKeptFileBytesMax) {
        return leave(Unkept::kFileBytes);
    }
    if (const Status begun = versions_->blobs().begin(file.value().bytes); begun.has_error()) {
        if (begun.error().code() == ErrorCode::kLimitExceeded) {
            return Step::kNoSpace;
        }
        return begun.error();
    }
    ++reads_;
    reading_.emplace(Reading{*path_, std::move(file).value(), protocol::Sha256(), 0});
    return Step::kMore;
}

Result<FileCapture::Step> FileCapture::read_on() {
    Reading& reading = *reading_;
    const std::uint64_t left = reading.file.bytes - reading.read;
    if (left == 0) {
        return close();
    }
    buffer_.resize(std::min<std::uint64_t>(kCaptureReadBytes, left));
    const ssize_t got = ::read(reading.file.fd.get(), buffer_.data(), buffer_.size());
    if (got < 0 && errno == EINTR) {
        return Step::kMore;
    }
    if (got <= 0) {
        return close();  // it has become shorter, or cannot be read
    }
    const std::string_view bytes(buffer_.data(), static_cast<std::size_t>(got));
    reading.hash.update(bytes);
    BOOST_OUTCOME_TRY(versions_->blobs().append(bytes));
    reading.read += bytes.size();
    slice_bytes_ += bytes.size();
    return Step::kMore;
}

Result<FileCapture::Step> FileCapture::close() {
    Reading reading = std::move(*reading_);
    reading_.reset();
    struct stat info {};
    const bool same = reading.read == reading.file.bytes &&
                      ::fstat(reading.file.fd.get(), &info) == 0 &&
                      sandbox::file_state(info) == reading.file.state;
    if (!same) {
        versions_->blobs().abandon();
        return reads_ < kReadsMax ? Result<Step>(Step::kMore) : leave(Unkept::kChanging);
    }
    std::string digest = reading.hash.finish();
    BOOST_OUTCOME_TRY(versions_->blobs().finish(digest));
    versions_->note(reading.path, reading.file.state, digest);
    keep(reading.file.state, std::move(digest));
    return Step::kMore;
}

Result<FileCapture::Step> FileCapture::leave(Unkept why) {
    manifest_.unkept.emplace(*std::exchange(path_, std::nullopt), why);
    return Step::kMore;
}

void FileCapture::keep(const FileState& state, std::string content) {
    manifest_.bytes += state.bytes;
    manifest_.files.emplace(
        *std::exchange(path_, std::nullopt),
        KeptFile{state.kind, state.mode, state.modified, state.bytes, std::move(content)});
}

void FileCapture::pass_over() {
    if (path_.has_value()) {
        (void)leave(Unkept::kSpace).has_value();  // cannot fail
    }
}

}  // namespace cellkeep::checkpoint
