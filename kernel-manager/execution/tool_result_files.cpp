// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/tool_result_files.hpp"

#include "kernel-manager/execution/saved_texts.hpp"
#include "protocol/sha256.hpp"
#include "sandbox/workspace/workspace_walker.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

std::string tools_directory() {
    return std::string(sandbox::kServerDirectory) + "/tools";
}

Error no_room(const std::string& why) {
    return {ErrorCode::kLimitExceeded, why};
}

}  // namespace

ToolResultFiles::ToolResultFiles(const sandbox::Workspace& workspace)
    : directory_(::fcntl(workspace.directory_fd(), F_DUPFD_CLOEXEC, 0)),
      workspace_(directory_.get(), workspace.file_uid(), workspace.file_gid()) {}

void ToolResultFiles::forget_removed() {
    kept_.erase(
        std::remove_if(
            kept_.begin(),
            kept_.end(),
            [&](const Kept& one) {
                const auto found = workspace_.stat(one.path);
                return found.has_error() || found.value().kind != sandbox::EntryKind::kFile;
            }),
        kept_.end());
}

Status ToolResultFiles::check_room(std::uint64_t bytes) const {
    const std::uint64_t one = saved_text_room(workspace_);
    if (bytes > one) {
        return no_room(
            "The result has " + std::to_string(bytes) + " bytes, and a file of it may have " +
            std::to_string(one) + " in this workspace.");
    }
    std::uint64_t all = 0;
    for (const Kept& kept : kept_) {
        all += kept.bytes;
    }
    const std::uint64_t most = std::min(kToolFilesBytesMax, workspace_bytes(workspace_) / 2);
    if (kept_.size() == kToolFilesMax || all + bytes > most) {
        return no_room(
            "The result has " + std::to_string(bytes) + " bytes, and this session keeps " +
            std::to_string(kept_.size()) + " results of tools with " + std::to_string(all) +
            " bytes as files already, of " + std::to_string(kToolFilesMax) + " and " +
            std::to_string(most) + ". Remove some of " + tools_directory() + ".");
    }
    return ok();
}

Result<ToolFile> ToolResultFiles::add(
    const std::string& execution_id, std::string_view bytes, std::string media_type) {
    if (!directory_) {
        return no_room("The server has too many files open to keep the result as one.");
    }
    forget_removed();
    BOOST_OUTCOME_TRY(check_room(bytes.size()));
    ToolFile file;
    file.path = tools_directory() + "/" + (execution_id.empty() ? "cell" : execution_id) + "_" +
                std::to_string(++written_) + (media_type == "text/plain" ? ".txt" : ".json");
    file.bytes = bytes.size();
    file.media_type = std::move(media_type);
    const Status written = workspace_.write_file(file.path, bytes);
    if (written.has_error()) {
        return Error(
            written.error().code(),
            "The result has " + std::to_string(bytes.size()) +
                " bytes, and its file cannot be written: " + written.error().message() + ".");
    }
    file.sha256 = protocol::sha256_hex(bytes);
    kept_.push_back({file.path, file.bytes});
    return file;
}

}  // namespace cellkeep::session
