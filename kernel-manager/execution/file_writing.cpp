// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/file_writing.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <utility>

namespace cellkeep::session {

namespace {

std::string field_of(std::size_t index) {
    return "files/" + std::to_string(index);
}

}  // namespace

FileWriting::FileWriting(
    const sandbox::Workspace& workspace,
    std::vector<InputFile> files,
    std::shared_ptr<const InputsDirectory> inputs,
    References references)
    : directory_(::fcntl(workspace.directory_fd(), F_DUPFD_CLOEXEC, 0)),
      workspace_(directory_.get(), workspace.file_uid(), workspace.file_gid()),
      files_(std::move(files)),
      inputs_(std::move(inputs)),
      references_(references),
      reads_inputs_(references == References::kCopied && has_references(files_)),
      bytes_(bytes_of(files_)) {
    if (!directory_) {
        status_ = Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
}

WorkThread::Slice FileWriting::advance() {
    if (status_.has_error() || next_ == files_.size() || cancelled_) {
        return WorkThread::Slice::kDone;
    }
    auto written = step();
    if (written.has_error()) {
        copy_.reset();
        status_ = fail(std::move(written).error());
        return WorkThread::Slice::kDone;
    }
    if (written.value()) {
        copy_.reset();
        files_[next_].bytes = {};
        ++next_;
    }
    return next_ < files_.size() ? WorkThread::Slice::kMore : WorkThread::Slice::kDone;
}

Status FileWriting::run() {
    while (advance() == WorkThread::Slice::kMore) {
    }
    return status_;
}

/// True: the file is in place.
Result<bool> FileWriting::step() {
    const InputFile& file = files_[next_];
    if (file.from.empty()) {
        BOOST_OUTCOME_TRY(workspace_.write_file(file.path, file.bytes));
        return true;
    }
    if (references_ == References::kMounted) {
        return true;
    }
    if (!copy_) {
        if (!inputs_) {
            return no_inputs_directory();
        }
        BOOST_OUTCOME_TRY(auto copy, inputs_->begin_copy(file, workspace_));
        copy_.emplace(std::move(copy));
    }
    BOOST_OUTCOME_TRY(const bool whole, copy_->advance());
    if (!whole || cancelled_) {
        return false;
    }
    BOOST_OUTCOME_TRY(copy_->commit());
    return true;
}

Status FileWriting::fail(Error error) const {
    return std::move(error).within_field(field_of(next_));
}

Status check_files(const std::vector<InputFile>& files, const InputsDirectory* inputs) {
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto path = sandbox::parse_workspace_path(files[i].path);
        if (path.has_error() || path.value().empty()) {
            return Error::in_field(
                ErrorCode::kInvalidArgument,
                field_of(i) + "/path",
                path.has_error() ? path.error().message() : std::string("must name a file"));
        }
        if (files[i].from.empty()) {
            continue;
        }
        Status there =
            inputs != nullptr ? inputs->check_copy(files[i]) : Status(no_inputs_directory());
        if (there.has_error()) {
            return std::move(there).error().within_field(field_of(i));
        }
    }
    return ok();
}

bool is_about_files(const Error& error) {
    return error.field().starts_with("files/");
}

Error not_created(Error why) {
    return is_about_files(why) ? why : std::move(why).with_context("create session");
}

std::size_t bytes_of(const std::vector<InputFile>& files) {
    std::size_t bytes = 0;
    for (const InputFile& file : files) {
        bytes += file.path.size() + file.bytes.size() + file.from.size();
    }
    return bytes;
}

}  // namespace cellkeep::session
