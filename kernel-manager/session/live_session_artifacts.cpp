// SPDX-License-Identifier: Apache-2.0
//
// The files of executions: those that come with one, and those that it made or changed.
#include "kernel-manager/session/live_session.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {

using protocol::Message;

Status LiveSession::write_files(std::vector<InputFile> files) {
    BOOST_OUTCOME_TRY(check_places(files));
    return FileWriting(workspace_, std::move(files), setup_.inputs, References::kMounted).run();
}

Status LiveSession::check_places(const std::vector<InputFile>& files) const {
    for (std::size_t i = 0; i < files.size(); ++i) {
        BOOST_OUTCOME_TRY(with_context(
            sandbox::parse_workspace_path(files[i].path), "files/" + std::to_string(i) + "/path"));
        const auto mounted = setup_.mounted.find(files[i].path);
        // The mount itself is in the list that the session was made with.
        if (mounted != setup_.mounted.end() && files[i].from != mounted->second) {
            return Error(
                ErrorCode::kInvalidArgument,
                "files/" + std::to_string(i) + "/path: a read-only input is mounted there");
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

void LiveSession::place_files() {
    const std::uint64_t number = current_->number;
    const auto writing = current_->writing;
    if (!writing->reads_inputs()) {
        (void)writing->run().has_value();  // on_files_placed() looks
        on_files_placed(number);
        return;
    }
    // The guard keeps the io_context running until they are in place.
    setup_.inputs_thread->run(
        [weak = weak_from_this(), writing, number, work = boost::asio::make_work_guard(io_)] {
            if (writing->advance() == WorkThread::Slice::kMore) {
                return WorkThread::Slice::kMore;
            }
            boost::asio::post(work.get_executor(), [weak, number] {
                if (const auto self = weak.lock()) {
                    self->on_files_placed(number);
                }
            });
            return WorkThread::Slice::kDone;
        });
}

void LiveSession::on_files_placed(std::uint64_t number) {
    if (!is_current(number) || !current_->writing) {
        return;  // it ended meanwhile
    }
    const Status& placed = current_->writing->status();
    if (placed.has_error()) {
        current_->refused = placed.error();
        if (placed.error().code() == ErrorCode::kLimitExceeded) {
            // As if the code itself had written them.
            ErrorFacts facts;
            facts.number = ENOSPC;
            facts.full = sandbox::kWorkspacePath;
            current_->hit = find_limit(facts, {}, setup_.options.limits);
        }
        finish_unsent();
        return;
    }
    current_->writing.reset();
    send_current();
}

void LiveSession::finish_unsent() {
    std::exchange(current_->writing, nullptr)->cancel();
    settle_limits(std::nullopt);
    if (current_->refused.has_value() && current_->hit.has_value() && setup_.log_limit) {
        setup_.log_limit(current_->request.execution->execution->id(), *current_->hit);
    }
    const Message request = current_->request.message;
    publish(messages_.status("busy", &request));
    publish(messages_.status("idle", &request));
    finish_current();
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
