// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/mounted_inputs.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace cellkeep::session {

Status check_start_files(const std::vector<InputFile>& files, const MountedInputs& mounted) {
    for (std::size_t i = 0; i < files.size(); ++i) {
        auto path = sandbox::parse_workspace_path(files[i].path);
        if (path.has_error()) {
            return std::move(path).error().within_field("files/" + std::to_string(i) + "/path");
        }
        const auto mount = mounted.find(files[i].path);
        // The mount itself is in the list that the session was made with.
        if (mount != mounted.end() && files[i].from != mount->second) {
            return Error::in_field(
                ErrorCode::kInvalidArgument,
                "files/" + std::to_string(i) + "/path",
                "a read-only input is mounted there");
        }
    }
    return ok();
}

Result<std::shared_ptr<FileWriting>> prepare_start_files(
    const sandbox::Workspace& workspace,
    std::vector<InputFile> files,
    const MountedInputs& mounted,
    std::shared_ptr<const InputsDirectory> inputs) {
    BOOST_OUTCOME_TRY(check_start_files(files, mounted));
    return std::make_shared<FileWriting>(
        workspace, std::move(files), std::move(inputs), References::kMounted);
}

Result<sandbox::Workspace::OpenedFile> open_mounted(
    const InputsDirectory& inputs, const std::string& name) {
    BOOST_OUTCOME_TRY(auto input, inputs.open_file(name));
    sandbox::Workspace::OpenedFile file;
    file.fd = std::move(input.fd);
    file.bytes = input.state.bytes;
    file.modified = std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::nanoseconds(input.state.modified)));
    file.state = input.state;
    return file;
}

}  // namespace cellkeep::session
