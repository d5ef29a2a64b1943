// SPDX-License-Identifier: Apache-2.0
//
// Results of tools that are too long for the answer to a call, as files in the session's workspace.
// Files that the guest has removed no longer count; none is removed for it, because its variables
// may name them. Driven by one thread at a time.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

/// Files of one session that are there, and their bytes; or half the workspace, if that is less.
inline constexpr std::size_t kToolFilesMax = 64;
inline constexpr std::uint64_t kToolFilesBytesMax = 128ULL << 20U;

/// One of them.
struct ToolFile {
    std::string path;  // in the workspace
    std::uint64_t bytes = 0;
    std::string sha256;
    std::string media_type;  // "text/plain" or "application/json"
};

class ToolResultFiles {
 public:
    /// Keeps a descriptor of its own of the workspace.
    explicit ToolResultFiles(const sandbox::Workspace& workspace);
    ToolResultFiles(const ToolResultFiles&) = delete;
    ToolResultFiles& operator=(const ToolResultFiles&) = delete;
    ~ToolResultFiles() = default;

    /// Writes a result. execution_id: empty for a Jupyter client's cell. kLimitExceeded: it is
    /// longer than one file may be (saved_text_room()), the session keeps too many, or the
    /// workspace is full. Else what the guest has put in the way. The message is for the code.
    Result<ToolFile> add(
        const std::string& execution_id, std::string_view bytes, std::string media_type);

 private:
    struct Kept {
        std::string path;
        std::uint64_t bytes = 0;
    };
    void forget_removed();
    Status check_room(std::uint64_t bytes) const;

    const UniqueFd directory_;
    const sandbox::Workspace workspace_;
    std::vector<Kept> kept_;
    std::uint64_t written_ = 0;  // how many there ever were: none has the name of another
};

}  // namespace cellkeep::session
