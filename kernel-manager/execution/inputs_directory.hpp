// SPDX-License-Identifier: Apache-2.0
//
// The operator's directory of files that sessions may have by name, read-only. Files are opened
// beneath it, never through a link. Large ones are mounted into a session when it is made; for an
// execution they are copied, up to limits::kInputCopyBytesMax each. One thread, but for what
// check() reads and for copies.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace cellkeep::session {

/// Digests that are remembered, each for one version of one file.
inline constexpr std::size_t kInputDigestsMax = 1024;

class InputsDirectory {
 public:
    /// kNotFound or kInvalidArgument if path is not a directory.
    static Result<std::shared_ptr<InputsDirectory>> open(const std::string& path);

    struct OpenedInput {
        UniqueFd fd;
        sandbox::FileState state;
        std::uint64_t device = 0;
    };
    /// kInvalidArgument, "from: …", if there is no such plain file, or not beneath the directory.
    Result<OpenedInput> open_file(const std::string& name) const;

    /// One version of one file: device, inode, size, times.
    using Version =
        std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t>;
    /// By their place in the list, the versions whose digests were found right.
    using Checked = std::map<std::size_t, Version>;

    /// Whether a session may be made with these files: they are there, and those that name a digest
    /// have it. The work thread reads them. kInvalidArgument in the field "files/N/from" or
    /// "files/N/sha256".
    static boost::asio::awaitable<Result<Checked>> check(
        std::shared_ptr<InputsDirectory> self,
        boost::asio::io_context& io,
        std::shared_ptr<WorkThread> thread,
        const std::vector<InputFile>& files);
    /// Those files of the list that come from here, as mounts.
    std::vector<sandbox::InputMount> mounts_of(const std::vector<InputFile>& files) const;
    /// Whether what was mounted there, by its path, is what check() has read the digest of: the
    /// file may have been replaced or written to meanwhile. kInvalidArgument in the field
    /// "files/N/from".
    static Status check_mounted(
        const std::vector<InputFile>& files,
        const Checked& checked,
        const sandbox::Workspace& workspace);

    /// One input on its way into a workspace, which must outlive it. Uncommitted it leaves nothing.
    class Copy {
     public:
        /// Some megabytes; true at the end. kInvalidArgument, "from: …" (too long, not readable to
        /// the length that it had) or "sha256: …"; otherwise what the workspace says.
        Result<bool> advance();
        Status commit() { return upload_.commit(); }

     private:
        friend class InputsDirectory;
        Copy(OpenedInput input, sandbox::Workspace::Upload upload, std::string sha256);

        OpenedInput input_;
        sandbox::Workspace::Upload upload_;
        std::string sha256_;
        protocol::Sha256 hash_;
        std::uint64_t offset_ = 0;
        std::string buffer_;
    };
    /// On any thread. kInvalidArgument, "from: …".
    Result<Copy> begin_copy(const InputFile& file, const sandbox::Workspace& workspace) const;
    /// What begin_copy() would refuse of the input.
    Status check_copy(const InputFile& file) const;

 private:
    static Version version_of(const sandbox::FileState& state, std::uint64_t device);
    InputsDirectory(std::string path, UniqueFd directory)
        : path_(std::move(path)), directory_(std::move(directory)) {}
    Result<OpenedInput> open_for_copy(const InputFile& file) const;
    static boost::asio::awaitable<Result<std::string>> digest(
        std::shared_ptr<InputsDirectory> self,
        boost::asio::io_context& io,
        std::shared_ptr<WorkThread> thread,
        OpenedInput input);

    std::string path_;
    UniqueFd directory_;
    std::map<Version, std::string> digests_;
};

/// Whether any of them comes from the inputs directory.
bool has_references(const std::vector<InputFile>& files);

/// What to answer where there is no such directory.
Error no_inputs_directory();

}  // namespace cellkeep::session
