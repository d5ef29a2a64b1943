// SPDX-License-Identifier: Apache-2.0
//
// The files that one session's executions make and change: notes them while code runs, has them
// read by the work thread afterwards, and says what they are. One execution at a time. All calls on
// the io_context thread; the answer too.
#pragma once

#include "kernel-manager/execution/artifacts/artifact_digest.hpp"
#include "kernel-manager/execution/artifacts/artifact_tracker.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace cellkeep::session {

/// How much later than it should the work thread may answer.
inline constexpr std::chrono::milliseconds kArtifactSlack{200};

class ArtifactCollector : public std::enable_shared_from_this<ArtifactCollector> {
 public:
    /// The workspace's descriptor must stay open until close().
    static std::shared_ptr<ArtifactCollector> create(
        boost::asio::io_context& io,
        std::shared_ptr<WorkThread> thread,
        const sandbox::Workspace& workspace);
    ArtifactCollector(const ArtifactCollector&) = delete;
    ArtifactCollector& operator=(const ArtifactCollector&) = delete;
    ~ArtifactCollector() = default;

    /// An execution begins.
    void begin();
    /// ArtifactTracker::watch_fd() and note_unchanged().
    int watch_fd() const { return tracker_ ? tracker_->watch_fd() : -1; }
    void note_unchanged() {
        if (tracker_) {
            tracker_->note_unchanged();
        }
    }
    /// Of an execution whose code runs: as ArtifactTracker's.
    ArtifactTracker::Passed pass_on() {
        return tracker_ ? tracker_->pass_on() : ArtifactTracker::Passed();
    }
    void go_on(ArtifactTracker::Passed passed) {
        if (tracker_) {
            tracker_->go_on(std::move(passed));
        }
    }
    std::size_t passed_bytes() const { return tracker_ ? tracker_->passed_bytes() : 0; }
    /// It has ended: `done` is called once, at once if there is nothing to read, otherwise within
    /// limits::kArtifactTimeMax and kArtifactSlack or when close() is called. Not while busy().
    /// Without digests if the work thread does not answer; while it still has not, nothing new is
    /// given to it.
    void finish(std::uint64_t bytes_max, std::function<void(Artifacts)> done);
    /// Between finish() and its answer.
    bool busy() const { return static_cast<bool>(done_); }
    /// The workspace goes: callers that wait get what is known.
    void close();

 private:
    ArtifactCollector(
        boost::asio::io_context& io,
        std::shared_ptr<WorkThread> thread,
        const sandbox::Workspace& workspace);
    void answer(std::uint64_t number, Artifacts artifacts);
    void give_up_in_time();

    boost::asio::io_context& io_;
    std::shared_ptr<WorkThread> thread_;
    sandbox::Workspace workspace_;
    std::unique_ptr<ArtifactTracker> tracker_;  // null after close()
    std::function<void(Artifacts)> done_;
    Artifacts known_;  // what done_ gets if there is no more
    boost::asio::steady_timer patience_;
    std::size_t unanswered_ = 0;  // jobs of the work thread
    std::uint64_t number_ = 0;    // so that a late answer cannot hit the next execution
};

}  // namespace cellkeep::session
