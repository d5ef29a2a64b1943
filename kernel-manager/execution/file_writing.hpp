// SPDX-License-Identifier: Apache-2.0
//
// Puts the files that come with code into a workspace, in their order, slice by slice: those by
// their bytes and those of the operator's inputs directory, whose disk may be slow. Driven by one
// thread at a time; cancel() is called on any. What was written before a failure stays.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/inputs_directory.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace cellkeep::session {

/// Bytes of files that are written on the event loop; more are written by a work thread.
inline constexpr std::size_t kFilesWrittenAtOnceBytesMax = 64ULL << 10U;

/// What becomes of files of the inputs directory: those of a session are mounted when its sandbox
/// is made, and left out here.
enum class References { kCopied, kMounted };

class FileWriting {
 public:
    /// Keeps a descriptor of its own of the workspace. inputs may be null: there is no directory.
    FileWriting(
        const sandbox::Workspace& workspace,
        std::vector<InputFile> files,
        std::shared_ptr<const InputsDirectory> inputs,
        References references = References::kCopied);
    FileWriting(const FileWriting&) = delete;
    FileWriting& operator=(const FileWriting&) = delete;
    ~FileWriting() = default;

    /// Whether any of them comes from the inputs directory.
    bool reads_inputs() const { return reads_inputs_; }
    /// What the files that come by their bytes have, before any is written.
    std::size_t bytes() const { return bytes_; }
    /// Some megabytes, or one file.
    WorkThread::Slice advance();
    /// advance() to the end.
    Status run();
    /// Nothing more is put in place from now on.
    void cancel() { cancelled_ = true; }

    /// When advance() is done. The error's field is what failed: "files/N" for a place in the
    /// workspace, "files/N/path", "files/N/from" and "files/N/sha256" (kInvalidArgument)
    /// for what was asked. kLimitExceeded: the workspace is full.
    const Status& status() const { return status_; }

 private:
    Result<bool> step();
    Status fail(Error error) const;

    UniqueFd directory_;
    sandbox::Workspace workspace_;
    std::vector<InputFile> files_;
    std::shared_ptr<const InputsDirectory> inputs_;
    References references_;
    bool reads_inputs_;
    std::size_t bytes_;
    std::size_t next_ = 0;
    std::optional<InputsDirectory::Copy> copy_;  // of files_[next_]
    Status status_ = ok();
    std::atomic<bool> cancelled_{false};
};

/// Before anything is written: paths that are none, and inputs that are not there or longer than an
/// execution copies. The same fields.
Status check_files(const std::vector<InputFile>& files, const InputsDirectory* inputs);

/// Returns whether the error's field is one of the request's files.
bool is_about_files(const Error& error);

/// Says that no session was created, except of an error about one of its files: the pointer to the
/// file says enough.
Error not_created(Error why);

/// What keeping them costs until they are written.
std::size_t bytes_of(const std::vector<InputFile>& files);

}  // namespace cellkeep::session
