// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/file_keeper.hpp"

#include "kernel-manager/checkpoint/files/file_capture.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>

namespace cellkeep::checkpoint {

FileKeeper::FileKeeper(
    boost::asio::io_context& io,
    std::shared_ptr<WorkThread> thread,
    std::shared_ptr<BlobSpace> space,
    const sandbox::Workspace& workspace,
    std::set<std::string> ignored)
    : io_(io),
      thread_(std::move(thread)),
      space_(std::move(space)),
      workspace_(workspace),
      ignored_(std::move(ignored)) {}

void FileKeeper::close() {
    closed_ = true;
    if (versions_) {
        // Giving back a large file takes its time.
        thread_->run([versions = std::exchange(versions_, nullptr)]() mutable {
            versions.reset();
            return WorkThread::Slice::kDone;
        });
    }
}

Status FileKeeper::open() {
    if (closed_) {
        return Error(ErrorCode::kConflict, "checkpoint: the session has ended");
    }
    if (versions_) {
        return ok();
    }
    UniqueFd directory(::fcntl(workspace_.directory_fd(), F_DUPFD_CLOEXEC, 0));
    if (!directory) {
        const Error why = Error::from_errno(errno, "checkpoint: files: fcntl");
        return Error(ErrorCode::kUnavailable, why.message());
    }
    versions_ = std::make_shared<FileVersions>(
        std::move(directory), workspace_.file_uid(), workspace_.file_gid(), space_, ignored_);
    return ok();
}

boost::asio::awaitable<Result<FileKeeper::Kept>> FileKeeper::capture(MakeRoom make_room) {
    if (!space_) {
        co_return std::make_shared<const Manifest>();
    }
    BOOST_OUTCOME_CO_TRY(open());
    const auto thread = thread_;
    const auto capture = std::make_shared<FileCapture>(versions_);
    using Stop = Result<FileCapture::Step>;
    for (;;) {
        const std::function<std::optional<Stop>()> slice = [capture]() -> std::optional<Stop> {
            Stop step = capture->advance();
            return step.has_value() && step.value() == FileCapture::Step::kMore
                       ? std::nullopt
                       : std::optional(std::move(step));
        };
        const Stop stop = co_await run_elsewhere<Stop>(io_, *thread, slice);
        if (stop.has_error()) {
            thread->run([capture] {
                capture->give_up();
                return WorkThread::Slice::kDone;
            });
            co_return stop.error();
        }
        if (stop.value() == FileCapture::Step::kDone) {
            co_return std::make_shared<const Manifest>(capture->take());
        }
        if (!make_room()) {
            capture->pass_over();
        }
    }
}

boost::asio::awaitable<Result<Restored>> FileKeeper::restore(Kept target, Kept left) {
    if (!space_) {
        co_return Restored();
    }
    BOOST_OUTCOME_CO_TRY(open());
    auto work = std::make_shared<FileRestore>(versions_, std::move(target), std::move(left));
    co_return co_await run(std::move(work));
}

boost::asio::awaitable<Result<Restored>> FileKeeper::restore_from(
    Kept target, std::shared_ptr<FileVersions> source) {
    if (!space_ || !source) {
        co_return Restored();
    }
    BOOST_OUTCOME_CO_TRY(open());
    auto work =
        std::make_shared<FileRestore>(versions_, std::move(target), nullptr, std::move(source));
    co_return co_await run(std::move(work));
}

boost::asio::awaitable<Restored> FileKeeper::run(std::shared_ptr<FileRestore> work) {
    const auto thread = thread_;
    const std::function<std::optional<Restored>()> slice = [work]() -> std::optional<Restored> {
        return work->advance() ? std::nullopt : std::optional(work->take());
    };
    co_return co_await run_elsewhere<Restored>(io_, *thread, slice);
}

boost::asio::awaitable<MergeAnswer> FileKeeper::merge(
    Kept ours, std::shared_ptr<const HeldFiles> theirs, Kept base, MergeOrder order) {
    const auto thread = thread_;
    FileMerge::Sides sides{
        versions_, std::move(ours), theirs->versions(), theirs->manifest(), std::move(base)};
    // The thread's alone: its plan is as large as the workspaces.
    std::function<std::optional<MergeAnswer>()> slice =
        [work = std::make_shared<FileMerge>(
             std::move(sides), std::move(order))]() -> std::optional<MergeAnswer> {
        return work->advance() ? std::nullopt : std::optional(work->take());
    };
    co_return co_await run_elsewhere<MergeAnswer>(io_, *thread, std::move(slice));
}

/// In one slice: a manifest has a bound (sandbox::kWalkEntriesMax).
boost::asio::awaitable<FileChanges> FileKeeper::compare(
    Kept earlier, Kept later, ChangesPage page) {
    const auto thread = thread_;
    std::function<std::optional<FileChanges>()> slice =
        [earlier = std::move(earlier), later = std::move(later), page = std::move(page)]()
        -> std::optional<FileChanges> { return checkpoint::compare(*earlier, *later, page); };
    co_return co_await run_elsewhere<FileChanges>(io_, *thread, std::move(slice));
}

void FileKeeper::drop(Kept kept) {
    if (versions_ && kept) {
        thread_->run([versions = versions_, kept = std::move(kept)] {
            versions->drop(*kept);
            return WorkThread::Slice::kDone;
        });
    }
}

bool FileKeeper::is_at_rest() const {
    // Each piece of work and each holder has its own pointer, and only this one makes more.
    return !versions_ || versions_.use_count() == 1;
}

std::optional<PassedBlobs> FileKeeper::pass_on() {
    CELLKEEP_CHECK(is_at_rest());
    closed_ = true;
    const auto versions = std::exchange(versions_, nullptr);
    if (!versions) {
        return std::nullopt;
    }
    // What the work thread did before it let go of its pointer is seen.
    std::atomic_thread_fence(std::memory_order_acquire);
    return versions->blobs().pass_on();
}

Status FileKeeper::go_on(PassedBlobs passed, const std::vector<Kept>& kept) {
    if (!space_) {
        return Error(ErrorCode::kUnavailable, "passed contents of files: this server keeps none");
    }
    BOOST_OUTCOME_TRY(open());
    BOOST_OUTCOME_TRY(versions_->blobs().go_on(std::move(passed)));
    for (const Kept& manifest : kept) {
        BOOST_OUTCOME_TRY(versions_->hold(*manifest));
    }
    return versions_->blobs().are_all_held()
               ? Status(ok())
               : Status(Error(
                     ErrorCode::kProtocol,
                     "passed contents of files: no checkpoint has some of them"));
}

}  // namespace cellkeep::checkpoint
