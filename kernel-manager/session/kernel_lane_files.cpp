// SPDX-License-Identifier: Apache-2.0
//
// The files of executions: those that come with one, and those that it made or changed.
#include "kernel-manager/session/kernel_lane.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {

using protocol::Message;

void KernelLane::place_files() {
    const std::uint64_t number = current_->number();
    const auto writing = current_->writing();
    if (!writing->reads_inputs()) {
        (void)writing->run().has_value();  // on_files_placed() looks
        on_files_placed(number);
        return;
    }
    // The guard keeps the io_context running until they are in place.
    shared_.setup.inputs_thread->run(
        [weak = weak(), writing, number, work = boost::asio::make_work_guard(shared_.io)] {
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

void KernelLane::on_files_placed(std::uint64_t number) {
    if (!is_current(number) || !current_->writing()) {
        return;  // it ended meanwhile
    }
    const Status& placed = current_->writing()->status();
    if (placed.has_error()) {
        current_->refuse(placed.error());
        if (placed.error().code() == ErrorCode::kLimitExceeded) {
            // As if the code itself had written them.
            ErrorFacts facts;
            facts.number = ENOSPC;
            facts.full = sandbox::kWorkspacePath;
            if (auto hit = find_limit(facts, {}, session_limits())) {
                current_->set_hit(std::move(*hit));
            }
        }
        finish_unsent();
        return;
    }
    current_->end_writing();
    send_current();
}

void KernelLane::finish_unsent() {
    current_->writing()->cancel();
    current_->end_writing();
    settle_limits(std::nullopt);
    if (current_->refusal().has_value() && current_->hit().has_value() && shared_.setup.log_limit) {
        shared_.setup.log_limit(current_->execution()->execution->id(), *current_->hit());
    }
    const Message request = current_->message();
    publish(messages_.status("busy", &request));
    publish(messages_.status("idle", &request));
    finish_current();
}

void KernelLane::complete_with_artifacts(
    const std::shared_ptr<TrackedExecution>& tracked, ExecutionResult result) {
    const auto kept = std::make_shared<ExecutionResult>(std::move(result));
    // At once, the caller goes on by itself, and may be in the middle of a death.
    const auto at_once = std::make_shared<bool>(true);
    artifacts_->finish(
        session_limits().artifact_bytes, [weak = weak(), tracked, kept, at_once](Artifacts found) {
            const auto self = weak.lock();
            if (!self) {
                return;  // nobody waits for the answer of a session that nobody holds
            }
            self->shared_.account.add_artifacts(found.bytes);
            add_artifacts(std::move(found), *kept);
            if (!self->shared_.closed) {
                self->shared_.saved_texts.keep(*kept, self->shared_.workspace);
            }
            self->host_.complete(*tracked, std::move(*kept));
            if (!*at_once) {
                self->dispatch_next();
                self->host_.review_life();
            }
        });
    *at_once = false;
}

}  // namespace cellkeep::session
