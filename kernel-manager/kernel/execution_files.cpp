// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/execution_files.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <utility>

namespace cellkeep::session {

ExecutionFiles::ExecutionFiles(
    boost::asio::io_context& io,
    Places places,
    SessionAccount& account,
    Owner owner,
    KeepAlive keep_alive)
    : io_(io),
      places_(std::move(places)),
      account_(account),
      owner_(std::move(owner)),
      keep_alive_(std::move(keep_alive)),
      artifacts_(ArtifactCollector::create(io, places_.work_thread, places_.workspace)) {}

std::shared_ptr<FileWriting> ExecutionFiles::take_files(TrackedExecution& execution) const {
    if (execution.files.empty()) {
        return nullptr;
    }
    return std::make_shared<FileWriting>(
        places_.workspace, std::exchange(execution.files, {}), places_.inputs);
}

void ExecutionFiles::place(
    const std::shared_ptr<FileWriting>& writing, std::function<void()> done) {
    if (!writing->reads_inputs() && writing->bytes() <= kFilesWrittenAtOnceBytesMax) {
        (void)writing->run().has_value();  // the caller looks at the status
        done();
        return;
    }
    const auto placed = [this, weak = std::weak_ptr(alive_), done = std::move(done)] {
        if (weak.expired()) {
            return;
        }
        if (const auto owner = keep_alive_()) {
            done();
        }
    };
    // The guard keeps the io_context running until they are in place.
    const auto& thread = writing->reads_inputs() ? places_.inputs_thread : places_.work_thread;
    thread->run([writing, placed, work = boost::asio::make_work_guard(io_)] {
        if (writing->advance() == WorkThread::Slice::kMore) {
            return WorkThread::Slice::kMore;
        }
        boost::asio::post(work.get_executor(), placed);
        return WorkThread::Slice::kDone;
    });
}

void ExecutionFiles::finish(
    const std::shared_ptr<TrackedExecution>& execution,
    ExecutionResult result,
    std::uint64_t bytes_max) {
    const auto kept = std::make_shared<ExecutionResult>(std::move(result));
    // At once, the caller goes on by itself, and may be in the middle of a death.
    const auto at_once = std::make_shared<bool>(true);
    artifacts_->finish(bytes_max, [this, execution, kept, at_once](Artifacts found) {
        const auto owner = keep_alive_();
        if (!owner) {
            return;  // the session is being destroyed: no client waits for the answer
        }
        account_.add_artifacts(found.bytes);
        add_artifacts(std::move(found), *kept);
        if (!closed_) {
            places_.saved_texts.keep(*kept, places_.workspace);
        }
        owner_.complete(*execution, std::move(*kept));
        if (!*at_once) {
            owner_.on_free();
        }
    });
    *at_once = false;
}

void ExecutionFiles::close() {
    closed_ = true;
    artifacts_->close();
}

}  // namespace cellkeep::session
