// SPDX-License-Identifier: Apache-2.0
//
// The files that a session begins with, and the operator's that are mounted into it.
#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/session/live_session.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace cellkeep::session {

Status LiveSession::write_files(std::vector<InputFile> files) {
    BOOST_OUTCOME_TRY(check_places(files));
    return FileWriting(workspace_, std::move(files), setup_.inputs, References::kMounted).run();
}

Status LiveSession::check_places(const std::vector<InputFile>& files) const {
    for (std::size_t i = 0; i < files.size(); ++i) {
        auto path = sandbox::parse_workspace_path(files[i].path);
        if (path.has_error()) {
            return std::move(path).error().within_field("files/" + std::to_string(i) + "/path");
        }
        const auto mounted = setup_.mounted.find(files[i].path);
        // The mount itself is in the list that the session was made with.
        if (mounted != setup_.mounted.end() && files[i].from != mounted->second) {
            return Error::in_field(
                ErrorCode::kInvalidArgument,
                "files/" + std::to_string(i) + "/path",
                "a read-only input is mounted there");
        }
    }
    return ok();
}

Result<sandbox::Workspace::OpenedFile> LiveSession::open_input(const std::string& path) const {
    const auto mounted = setup_.mounted.find(path);
    if (mounted == setup_.mounted.end() || !setup_.inputs) {
        return Session::open_input(path);
    }
    BOOST_OUTCOME_TRY(auto input, setup_.inputs->open_file(mounted->second));
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
