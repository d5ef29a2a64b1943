// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_checkpoints.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/syscall.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace cellkeep::session {

using checkpoint::Checkpoint;
using checkpoint::CheckpointMade;
using checkpoint::CheckpointOrder;
using checkpoint::Gone;
using checkpoint::RollbackOrder;
using checkpoint::RolledBack;

namespace {

constexpr std::size_t kIdBytes = 12;

Error unknown(const std::string& id) {
    return Error::in_field(
        ErrorCode::kNotFound, "checkpoint", "the session has no checkpoint " + id);
}

Error ended() {
    return {ErrorCode::kConflict, "checkpoint: the session has ended"};
}

}  // namespace

/// While it lives, no other piece of work is begun.
class SessionCheckpoints::Work {
 public:
    explicit Work(SessionCheckpoints& owner) : owner_(owner) { owner_.working_ = true; }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() { owner_.working_ = false; }

 private:
    SessionCheckpoints& owner_;
};

SessionCheckpoints::SessionCheckpoints(
    boost::asio::io_context& io, Hooks hooks, KeepAlive keep_session)
    : io_(io),
      hooks_(std::move(hooks)),
      keep_session_(std::move(keep_session)),
      tree_(limits::kCheckpointsMax) {}

Status SessionCheckpoints::begin_work() const {
    if (closed_) {
        return ended();
    }
    if (working_) {
        return Error(
            ErrorCode::kConflict,
            "checkpoint: another checkpoint or rollback of the session is under way");
    }
    return ok();
}

boost::asio::awaitable<Result<CheckpointMade>> SessionCheckpoints::make(CheckpointOrder order) {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(begin_work());
    const Work work(*this);
    std::string nothing_kept;
    co_return co_await copy(std::move(order), std::move(nothing_kept));
}

boost::asio::awaitable<Result<CheckpointMade>> SessionCheckpoints::copy(
    CheckpointOrder order, std::string kept) {
    BOOST_OUTCOME_CO_TRY(auto victim, tree_.find_victim(kept));
    BOOST_OUTCOME_CO_TRY(auto sockets, make_socket_pair(SOCK_SEQPACKET));
    BOOST_OUTCOME_CO_TRY(set_nonblocking(sockets.first.get()));
    auto answer = co_await hooks_.copy(std::move(sockets.second), order.on_threads);
    if (answer.has_error()) {
        co_return std::move(answer).error();
    }
    if (const auto* refused = std::get_if<checkpoint::NotForkable>(&answer.value())) {
        CheckpointMade made;
        made.refused = *refused;
        co_return made;
    }
    const auto copied = std::get<checkpoint::Copied>(answer.value());
    auto worker = co_await adopt(copied.forked);
    if (worker.has_error()) {
        co_return std::move(worker).error();
    }
    BOOST_OUTCOME_CO_TRY(
        auto sleeping,
        SleepingCopy::create(io_, std::move(sockets.first), std::move(worker.value())));
    if (closed_) {
        co_return ended();
    }
    co_return keep(std::move(order), copied, std::move(victim), std::move(sleeping));
}

/// The interpreter names a process; pid 1 looks whether it is one to take.
boost::asio::awaitable<Result<sandbox::Worker>> SessionCheckpoints::adopt(pid_t forked) {
    struct Adoption {
        explicit Adoption(boost::asio::io_context& io) : done(io) {}
        Completion<Status> done;
        std::optional<sandbox::Worker> worker;
    };
    const auto adoption = std::make_shared<Adoption>(io_);
    auto start = hooks_.adopt(forked, [adoption](Result<sandbox::Worker> worker) {
        if (worker.has_error()) {
            adoption->done.set(std::move(worker).error());
        } else {
            adoption->worker = std::move(worker).value();
            adoption->done.set(ok());
        }
    });
    if (start.has_error()) {
        co_return std::move(start).error();
    }
    const Status done = co_await Completion<Status>::wait(
        std::shared_ptr<Completion<Status>>(adoption, &adoption->done));
    if (done.has_error()) {
        co_return Error(
            ErrorCode::kUnavailable,
            "checkpoint: the copy cannot be taken: " + done.error().message());
    }
    co_return std::move(*adoption->worker);
}

Result<CheckpointMade> SessionCheckpoints::keep(
    CheckpointOrder order,
    const checkpoint::Copied& copied,
    std::optional<std::string> victim,
    std::shared_ptr<SleepingCopy> copy) {
    BOOST_OUTCOME_TRY(const std::string digits, random_hex(kIdBytes));
    CheckpointMade made;
    if (victim.has_value() && tree_.find(*victim) != nullptr) {
        forget(*victim, Gone::kEvicted);
        made.evicted = std::move(victim);
    }
    made.checkpoint = Checkpoint{
        .id = "ckp_" + digits,
        .parent = tree_.origin(),
        .label = std::move(order.label),
        .execution = hooks_.newest_execution(),
        .execution_count = copied.execution_count,
        .created_at = std::chrono::system_clock::now(),
        .lost = copied.lost};
    copies_.emplace(made.checkpoint.id, std::move(copy));
    tree_.add(made.checkpoint);
    return made;
}

boost::asio::awaitable<Result<RolledBack>> SessionCheckpoints::roll_back(RollbackOrder order) {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(begin_work());
    const Checkpoint* const target = tree_.find(order.checkpoint);
    if (target == nullptr) {
        co_return unknown(order.checkpoint);
    }
    const Work work(*this);
    hooks_.wake();
    RolledBack back;
    back.lost = target->lost;
    const std::string where = target->label ? "\"" + *target->label + "\"" : target->id;
    if (!order.discard && hooks_.has_interpreter()) {
        CheckpointOrder unlabelled;
        std::string kept = order.checkpoint;
        auto left = co_await copy(std::move(unlabelled), std::move(kept));
        if (left.has_error()) {
            co_return std::move(left).error();
        }
        if (left.value().refused) {
            back.refused = left.value().refused;
            co_return back;
        }
        back.left_as = std::move(left.value().checkpoint.id);
        back.evicted = std::move(left.value().evicted);
    }
    std::string id = order.checkpoint;
    auto woken = co_await wake(std::move(id), order.reseed);
    if (woken.has_error() && woken.error().code() == ErrorCode::kSystem) {
        back.refused = checkpoint::NotForkable{
            checkpoint::NotForkable::Why::kSystem,
            static_cast<std::uint32_t>(woken.error().errno_value())};
        co_return back;
    }
    if (woken.has_error()) {
        co_return std::move(woken).error();
    }
    std::string text = "The kernel went back to checkpoint " + where + ".";
    Status done = co_await hooks_.go_back(std::move(woken.value()), std::move(text));
    if (done.has_error()) {
        co_return std::move(done).error();
    }
    tree_.set_origin(order.checkpoint);
    co_return back;
}

/// Before anything is killed: a copy that does not fork costs nothing but itself.
boost::asio::awaitable<Result<WokenProcess>> SessionCheckpoints::wake(std::string id, bool reseed) {
    const auto found = copies_.find(id);
    if (found == copies_.end()) {
        co_return unknown(id);
    }
    const auto copy = found->second;
    BOOST_OUTCOME_CO_TRY(auto channels, make_channels());
    const ChannelEnds theirs = std::move(channels.theirs);
    BOOST_OUTCOME_CO_TRY(hooks_.give_outputs(theirs.stdout_fd, theirs.stderr_fd));
    const SleepingCopy::Ends ends{
        theirs.stdout_fd.get(), theirs.stderr_fd.get(), theirs.link.get()};
    const auto forked = co_await copy->wake(ends, reseed, limits::kCopyPatience);
    if (forked.has_error() && forked.error().code() != ErrorCode::kSystem) {
        forget(id, Gone::kDied);  // it does not do what it should, and may not be what it was
        co_return unknown(id);
    }
    if (forked.has_error()) {
        co_return forked.error();
    }
    co_return WokenProcess{forked.value(), std::move(channels.ours)};
}

Status SessionCheckpoints::remove(const std::string& id) {
    if (tree_.find(id) == nullptr) {
        return unknown(id);
    }
    forget(id, Gone::kDeleted);
    return ok();
}

void SessionCheckpoints::forget(const std::string& id, Gone why) {
    tree_.remove(id, why);
    if (auto gone = copies_.extract(id)) {
        gone.mapped()->close();
    }
}

void SessionCheckpoints::on_worker_exit(const sandbox::WorkerExit& exit) {
    const auto found = std::find_if(copies_.begin(), copies_.end(), [&](const auto& one) {
        return one.second->worker() == exit.id;
    });
    if (found != copies_.end()) {
        forget(std::string(found->first), Gone::kDied);
    }
}

void SessionCheckpoints::close() {
    closed_ = true;
    for (const auto& [id, copy] : std::exchange(copies_, {})) {
        copy->close();
    }
}

}  // namespace cellkeep::session
