// SPDX-License-Identifier: Apache-2.0
//
// The files of executions: those that come with one, and those that it made or changed.
#include "kernel-manager/session/live_session.hpp"

#include <utility>

namespace cellkeep::session {

Status LiveSession::write_files(const std::vector<InputFile>& files) {
    for (std::size_t i = 0; i < files.size(); ++i) {
        const InputFile& file = files[i];
        BOOST_OUTCOME_TRY(const auto path, sandbox::parse_workspace_path(file.path));
        if (file.from.empty()) {
            BOOST_OUTCOME_TRY(workspace_.write_file(path, file.bytes));
            continue;
        }
        Status copied =
            setup_.inputs ? setup_.inputs->copy(file, workspace_) : Status(no_inputs_directory());
        if (copied.has_error() && copied.error().code() == ErrorCode::kInvalidArgument) {
            return Error(
                ErrorCode::kInvalidArgument,
                "files/" + std::to_string(i) + "/" + copied.error().message());
        }
        BOOST_OUTCOME_TRY(std::move(copied));
    }
    return ok();
}

void LiveSession::complete_with_artifacts(
    const std::shared_ptr<TrackedExecution>& tracked, ExecutionResult result) {
    const auto kept = std::make_shared<ExecutionResult>(std::move(result));
    // At once, the caller goes on by itself, and may be in the middle of a death.
    const auto at_once = std::make_shared<bool>(true);
    artifacts_->finish(
        setup_.options.limits.artifact_bytes,
        [weak = weak_from_this(), tracked, kept, at_once](Artifacts found) {
            const auto self = weak.lock();
            if (!self) {
                return;  // nobody waits for the answer of a session that nobody holds
            }
            self->guard_.add_artifacts(found.bytes);
            add_artifacts(std::move(found), *kept);
            if (!self->closed_) {
                self->saved_texts_.keep(*kept, self->workspace_);
            }
            self->complete(*tracked, std::move(*kept));
            if (!*at_once) {
                self->dispatch_next();
                if (self->life_blocked_) {
                    self->watch_life();
                }
            }
        });
    *at_once = false;
}

}  // namespace cellkeep::session
