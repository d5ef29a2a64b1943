// SPDX-License-Identifier: Apache-2.0
//
// The files of one kernel's executions: puts those in place that come with one, notes while its
// code runs which files it makes or changes, and adds those and the saved texts to its answer. One
// execution at a time. All calls on the io_context thread; files are read and written by the work
// threads.
#pragma once

#include "kernel-manager/execution/artifacts/artifact_collector.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/execution/inputs_directory.hpp"
#include "kernel-manager/execution/saved_texts.hpp"
#include "kernel-manager/kernel/request_queue.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace cellkeep::session {

class ExecutionFiles {
 public:
    /// Where the files are, and who reads and writes them. What is referred to lives longer.
    struct Places {
        const sandbox::Workspace& workspace;
        SavedTexts& saved_texts;
        /// Reads what executions leave, and writes what comes with them.
        std::shared_ptr<WorkThread> work_thread;
        /// Reads the operator's inputs, whose disk may stall: nothing else waits for it.
        std::shared_ptr<WorkThread> inputs_thread;
        std::shared_ptr<const InputsDirectory> inputs;  // null: there is none
    };
    /// None is empty; each may end the session.
    struct Owner {
        /// The execution's one answer.
        std::function<void(TrackedExecution&, ExecutionResult)> complete;
        /// finish() had to wait for the files, and the answer is given: another may begin.
        std::function<void()> on_free;
    };

    ExecutionFiles(
        boost::asio::io_context& io,
        Places places,
        SessionAccount& account,
        Owner owner,
        KeepAlive keep_alive);
    ExecutionFiles(const ExecutionFiles&) = delete;
    ExecutionFiles& operator=(const ExecutionFiles&) = delete;
    ~ExecutionFiles() = default;

    /// Takes over the files that come with the execution; null if there are none.
    std::shared_ptr<FileWriting> take_files(TrackedExecution& execution) const;
    /// Puts them in place. Calls `done` when that is over or has failed (FileWriting::status()): at
    /// once if they are short and none comes from the operator's directory. Keeps the io_context
    /// running until then. Not after the end of this object.
    void place(const std::shared_ptr<FileWriting>& writing, std::function<void()> done);

    /// An execution's code begins: what is in the workspace now is not its doing.
    void begin() { artifacts_->begin(); }
    /// The same of one that has begun in another program in this process.
    void go_on(ArtifactTracker::Passed passed) { artifacts_->go_on(std::move(passed)); }
    ArtifactTracker::Passed pass_on() { return artifacts_->pass_on(); }
    std::size_t passed_bytes() const { return artifacts_->passed_bytes(); }
    /// Readable when a file changes. -1: only a look at the files tells.
    int watch_fd() const { return artifacts_->watch_fd(); }
    /// Its code has ended, and watch_fd() had nothing to be read: finish() need not look.
    void note_unchanged() { artifacts_->note_unchanged(); }
    /// Its code has ended: completes the result with what it left, of which at most bytes_max bytes
    /// are read, and gives the answer. At once if there is nothing to read. Not while busy().
    void finish(
        const std::shared_ptr<TrackedExecution>& execution,
        ExecutionResult result,
        std::uint64_t bytes_max);
    /// Between finish() and its answer.
    bool busy() const { return artifacts_->busy(); }
    /// The workspace goes: an execution that waits gets its answer with what is known.
    void close();

 private:
    boost::asio::io_context& io_;
    const Places places_;
    SessionAccount& account_;
    const Owner owner_;
    const KeepAlive keep_alive_;
    std::shared_ptr<ArtifactCollector> artifacts_;
    bool closed_ = false;
    std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace cellkeep::session
