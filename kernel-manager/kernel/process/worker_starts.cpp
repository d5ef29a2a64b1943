// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/worker_starts.hpp"

#include "protocol/support/unique_fd.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace cellkeep::session {

namespace {

void kill_worker(const sandbox::Worker& worker) {
    // Ignored: ESRCH means that it has ended by itself.
    (void)::syscall(SYS_pidfd_send_signal, worker.pidfd.get(), SIGKILL, nullptr, 0);
}

}  // namespace

WorkerStarts::WorkerStarts(
    boost::asio::io_context& io,
    Sandbox sandbox,
    std::chrono::milliseconds patience,
    KeepAlive keep_alive)
    : sandbox_(std::move(sandbox)),
      patience_(patience),
      keep_alive_(std::move(keep_alive)),
      answers_(io),
      deadline_(io, keep_alive_) {}

Result<std::shared_ptr<WorkerStart>> WorkerStarts::begin(
    sandbox::WorkerSpec spec, WorkerStart::Done done) {
    auto start = std::make_shared<WorkerStart>();
    start->spec_ = std::move(spec);
    start->done_ = std::move(done);
    if (!turn_ && may_begin(*start)) {
        BOOST_OUTCOME_TRY(send(start));
        return start;
    }
    std::erase_if(waiting_, [](const auto& one) { return one.expired(); });
    if (waiting_.size() >= kWaitingStartsMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "start: " + std::to_string(kWaitingStartsMax) + " others wait for the sandbox's pid 1");
    }
    waiting_.push_back(start);
    return start;
}

Status WorkerStarts::send(const std::shared_ptr<WorkerStart>& start) {
    auto turn = std::make_shared<Turn>();
    turn->start = start;
    turn->program = start->spec_.argv.empty() ? std::string() : start->spec_.argv[0];
    // First what can fail on this side, because a start that is sent cannot be taken back.
    BOOST_OUTCOME_TRY(watch());
    auto id = sandbox_.begin_start(std::exchange(start->spec_, {}));
    if (id.has_error()) {
        unwatch();
        return std::move(id).error();
    }
    start->id_ = id.value();
    turn_ = std::move(turn);
    deadline_.set_after(patience_, [this] { on_timeout(); });
    await_answer();
    return ok();
}

Status WorkerStarts::watch() {
    UniqueFd copy(::fcntl(sandbox_.answer_fd(), F_DUPFD_CLOEXEC, 0));
    if (!copy) {
        return Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
    boost::system::error_code error;
    answers_.assign(copy.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch the sandbox's pid 1: " + error.message());
    }
    (void)copy.release();
    return ok();
}

void WorkerStarts::unwatch() {
    boost::system::error_code ignored;  // our own duplicate descriptor
    answers_.close(ignored);
}

void WorkerStarts::await_answer() {
    answers_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [this, weak = std::weak_ptr<Turn>(turn_)](const boost::system::error_code& error) {
            if (error || weak.expired()) {
                return;  // this object may be gone, too
            }
            if (const auto owner = keep_alive_()) {
                take_answer();
            }
        });
}

void WorkerStarts::take_answer() {
    auto answer = sandbox_.take_start();
    if (answer.has_error()) {
        settle(std::move(answer).error());
    } else if (answer.value().has_value()) {
        settle(std::move(*answer.value()));
    } else {
        await_answer();
    }
}

void WorkerStarts::on_timeout() {
    if (sandbox_.is_frozen()) {
        deadline_.set_after(patience_, [this] { on_timeout(); });
        return;
    }
    sandbox_.give_up();
    settle(Error(
        ErrorCode::kTimeout,
        "start " + turn_->program + ": the sandbox's pid 1 did not answer in " +
            std::to_string(patience_.count()) + " ms"));
}

void WorkerStarts::settle(Result<sandbox::Worker> result) {
    deadline_.cancel();
    unwatch();
    const auto turn = std::exchange(turn_, nullptr);
    if (const auto start = turn->start.lock()) {
        const WorkerStart::Done done = std::exchange(start->done_, nullptr);
        done(std::move(result));
    } else if (result.has_value()) {
        kill_worker(result.value());
    }
    send_next();
}

/// Null: none may begin.
std::shared_ptr<WorkerStart> WorkerStarts::take_next() {
    std::erase_if(waiting_, [](const auto& one) { return one.expired(); });
    for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
        if (auto next = one->lock(); next && may_begin(*next)) {
            waiting_.erase(one);
            return next;
        }
    }
    return nullptr;
}

void WorkerStarts::send_next() {
    while (!turn_) {
        const auto next = take_next();
        if (!next) {
            return;
        }
        if (const Status sent = send(next); sent.has_error()) {
            const WorkerStart::Done done = std::exchange(next->done_, nullptr);
            done(sent.error());
        }
    }
}

}  // namespace cellkeep::session
