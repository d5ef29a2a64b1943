// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/artifacts/artifact_collector.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <fcntl.h>

#include <chrono>
#include <utility>

namespace cellkeep::session {

std::shared_ptr<ArtifactCollector> ArtifactCollector::create(
    boost::asio::io_context& io,
    std::shared_ptr<WorkThread> thread,
    const sandbox::Workspace& workspace) {
    return std::shared_ptr<ArtifactCollector>(
        new ArtifactCollector(io, std::move(thread), workspace));
}

ArtifactCollector::ArtifactCollector(
    boost::asio::io_context& io,
    std::shared_ptr<WorkThread> thread,
    const sandbox::Workspace& workspace)
    : io_(io), thread_(std::move(thread)), workspace_(workspace), patience_(io) {
    const auto close_elsewhere = [thread = thread_](UniqueFd fd) {
        thread->run([shared = std::make_shared<UniqueFd>(std::move(fd))] {
            shared->reset();
            return WorkThread::Slice::kDone;
        });
    };
    tracker_ = std::make_unique<ArtifactTracker>(workspace, close_elsewhere);
}

void ArtifactCollector::begin() {
    if (tracker_) {
        tracker_->begin();
    }
}

void ArtifactCollector::finish(std::uint64_t bytes_max, std::function<void(Artifacts)> done) {
    Artifacts artifacts;
    artifacts.complete = false;
    if (tracker_) {
        artifacts = list_artifacts(tracker_->take());
    }
    UniqueFd directory;
    if (!artifacts.files.empty() && unanswered_ == 0) {
        // A duplicate: the sandbox may go while the files are read.
        directory.reset(::fcntl(workspace_.directory_fd(), F_DUPFD_CLOEXEC, 0));
    }
    if (!directory) {
        done(std::move(artifacts));
        return;
    }
    known_ = artifacts;
    done_ = std::move(done);
    const auto job = std::make_shared<ArtifactDigest>(
        std::move(directory),
        workspace_.file_uid(),
        workspace_.file_gid(),
        std::move(artifacts),
        bytes_max,
        std::chrono::steady_clock::now() + limits::kArtifactTimeMax);
    give_up_in_time();
    ++unanswered_;
    // The guard keeps the io_context running until the answer is there.
    thread_->run([weak = weak_from_this(),
                  job,
                  number = ++number_,
                  work = boost::asio::make_work_guard(io_)] {
        if (job->advance() == WorkThread::Slice::kMore) {
            return WorkThread::Slice::kMore;
        }
        boost::asio::post(work.get_executor(), [weak, number, artifacts = job->take()]() mutable {
            if (const auto self = weak.lock()) {
                --self->unanswered_;
                self->answer(number, std::move(artifacts));
            }
        });
        return WorkThread::Slice::kDone;
    });
}

void ArtifactCollector::give_up_in_time() {
    patience_.expires_after(limits::kArtifactTimeMax + kArtifactSlack);
    patience_.async_wait(
        [weak = weak_from_this(), number = number_ + 1](const boost::system::error_code& error) {
            if (const auto self = weak.lock(); !error && self && self->number_ == number) {
                self->answer(number, std::move(self->known_));
            }
        });
}

void ArtifactCollector::answer(std::uint64_t number, Artifacts artifacts) {
    if (done_ && number == number_) {
        patience_.cancel();
        std::exchange(done_, nullptr)(std::move(artifacts));
    }
}

void ArtifactCollector::close() {
    tracker_.reset();
    patience_.cancel();
    if (done_) {
        std::exchange(done_, nullptr)(std::move(known_));
    }
}

}  // namespace cellkeep::session
