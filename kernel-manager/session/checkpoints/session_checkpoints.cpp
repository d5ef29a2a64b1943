// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/session_checkpoints.hpp"

#include "kernel-manager/session/checkpoints/session_work.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/syscall.hpp"

#include <sys/socket.h>

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

Error ended() {
    return {ErrorCode::kConflict, "checkpoint: the session has ended"};
}

}  // namespace

SessionCheckpoints::SessionCheckpoints(
    boost::asio::io_context& io,
    Hooks hooks,
    KeptCheckpoints::Places places,
    KeepAlive keep_session)
    : io_(io),
      hooks_(std::move(hooks)),
      keep_session_(std::move(keep_session)),
      kept_(io, std::move(places)),
      ready_(io, ready_hooks(), keep_session_) {}

ReadyForkKeeper::Hooks SessionCheckpoints::ready_hooks() {
    return {
        .copy_of = [this](const std::string& id) { return kept_.copy_of(id); },
        .wait_moved = [this] { return hooks_.starter.wait_moved(); },
        .is_paused = hooks_.is_paused,
        .has_room = hooks_.has_room,
        .wake = hooks_.wake,
        .settled = hooks_.settled};
}

Error SessionCheckpoints::unknown(const std::string& id) {
    return Error::in_field(
        ErrorCode::kNotFound, "checkpoint", "the session has no checkpoint " + id);
}

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
    const bool automatic = order.automatic;
    auto made = co_await make_one(std::move(order), std::move(nothing_kept));
    if (made.has_value() && !made.value().refused && !automatic) {
        ready_.begin(made.value().checkpoint.id);
    }
    co_return made;
}

boost::asio::awaitable<Result<CheckpointMade>> SessionCheckpoints::make_one(
    CheckpointOrder order, std::string kept) {
    std::optional<std::string> label = order.label;
    if (auto same = co_await find_unchanged(std::move(label))) {
        CheckpointMade made;
        made.checkpoint = std::move(*same);
        made.unchanged = true;
        if (!order.automatic) {
            kept_.confirm(made.checkpoint.id);
            made.checkpoint.automatic = false;
        }
        co_return made;
    }
    if (closed_) {
        co_return ended();
    }
    if (order.automatic && hooks_.is_paused()) {
        co_return Error(ErrorCode::kConflict, "checkpoint: the session is paused");
    }
    co_return co_await copy(std::move(order), std::move(kept));
}

/// The checkpoint that the interpreter comes from, if that and the files are as they are now.
boost::asio::awaitable<std::optional<Checkpoint>> SessionCheckpoints::find_unchanged(
    std::optional<std::string> label) {
    const Checkpoint* const origin = settled_ ? kept_.tree().find(settled_->checkpoint) : nullptr;
    // Threads and tasks go on between cells, and nothing says what they do.
    if (origin == nullptr || origin->id != kept_.tree().origin() ||
        settled_->begun != hooks_.begun() || origin->lost.threads > 0 ||
        origin->carried_threads > 0 || origin->goes_on || (label && label != origin->label)) {
        co_return std::nullopt;
    }
    Checkpoint same = *origin;
    const auto now = co_await kept_.look();
    if (now.has_error()) {
        co_return std::nullopt;  // the caller's own try says so
    }
    const Kept then = kept_.files_of(same.id);
    const bool alike = then && are_alike(*then, *now.value());
    kept_.drop(now.value());
    co_return alike ? std::optional(std::move(same)) : std::nullopt;
}

boost::asio::awaitable<Result<CheckpointMade>> SessionCheckpoints::copy(
    CheckpointOrder order, std::string kept) {
    BOOST_OUTCOME_CO_TRY(auto victim, kept_.tree().find_victim(kept, order.automatic));
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
    BOOST_OUTCOME_CO_TRY(auto adoption, Adoption::begin(io_, hooks_.starter, copied.forked, 0));
    // The files are looked at while the copy goes to sleep.
    Result<Kept> files = co_await kept_.look();
    auto asleep =
        co_await find_asleep(std::move(adoption), std::move(sockets.first), copied.prepares);
    const bool again =
        !order.automatic && files.has_value() && checkpoint::lacks_space(*files.value());
    if (files.has_value() && (asleep.has_error() || again)) {
        kept_.drop(std::move(files.value()));
    }
    BOOST_OUTCOME_CO_TRY(auto sleeping, std::move(asleep));
    std::vector<std::string> evicted;
    if (again) {
        // Nothing is evicted before there is a copy, and nothing that can be refused comes after.
        files = co_await kept_.capture(std::move(kept), evicted);
    }
    if (files.has_error()) {
        co_return std::move(files).error();
    }
    if (closed_) {
        co_return ended();
    }
    auto made = keep(
        std::move(order),
        copied,
        std::move(victim),
        {std::move(sleeping), std::move(files.value())});
    if (made.has_value()) {
        made.value().evicted.insert(made.value().evicted.begin(), evicted.begin(), evicted.end());
    }
    co_return made;
}

/// The copy of the interpreter that has said so, once pid 1 has taken it and it is asleep.
boost::asio::awaitable<Result<std::shared_ptr<SleepingCopy>>> SessionCheckpoints::find_asleep(
    std::shared_ptr<Adoption> adoption, UniqueFd socket, bool prepares) {
    auto adopted = co_await Adoption::wait(std::move(adoption));
    BOOST_OUTCOME_CO_TRY(auto worker, std::move(adopted));
    BOOST_OUTCOME_CO_TRY(
        auto sleeping, SleepingCopy::create(io_, std::move(socket), std::move(worker), prepares));
    const Status asleep = co_await sleeping->wait_asleep(limits::kCopyPatience);
    if (asleep.has_error()) {
        co_return asleep.error();
    }
    co_return sleeping;
}

Result<CheckpointMade> SessionCheckpoints::keep(
    CheckpointOrder order,
    const checkpoint::Copied& copied,
    std::optional<std::string> victim,
    KeptCheckpoints::Parts parts) {
    BOOST_OUTCOME_TRY(const std::string digits, random_hex(kIdBytes));
    CheckpointMade made;
    if (victim.has_value() && kept_.tree().find(*victim) != nullptr) {
        kept_.forget(*victim, Gone::kEvicted);
        made.evicted.push_back(std::move(*victim));
    }
    made.checkpoint = Checkpoint{
        .id = "ckp_" + digits,
        .parent = kept_.tree().origin(),
        .label = std::move(order.label),
        .execution = hooks_.newest_execution(),
        .execution_count = copied.execution_count,
        .created_at = std::chrono::system_clock::now(),
        .automatic = order.automatic,
        .carried_threads = copied.carried_threads,
        .lost = copied.lost,
        .goes_on = copied.goes_on,
        .files = {},
        .private_bytes = {}};
    const std::string id = made.checkpoint.id;
    kept_.add(std::move(made.checkpoint), std::move(parts));
    made.checkpoint = *kept_.tree().find(id);
    settle(id);
    return made;
}

boost::asio::awaitable<Result<RolledBack>> SessionCheckpoints::roll_back(RollbackOrder order) {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(begin_work());
    const Checkpoint* const target = kept_.tree().find(order.checkpoint);
    if (target == nullptr) {
        co_return unknown(order.checkpoint);
    }
    const Work work(*this);
    RolledBack back;
    back.lost = target->lost;
    const Kept files = kept_.files_of(order.checkpoint);
    Kept left_files;
    const std::string where = target->label ? "\"" + *target->label + "\"" : target->id;
    if (!order.discard && hooks_.has_interpreter()) {
        CheckpointOrder unlabelled;
        std::string kept = order.checkpoint;
        auto left = co_await make_one(std::move(unlabelled), std::move(kept));
        if (left.has_error()) {
            co_return std::move(left).error();
        }
        if (left.value().refused) {
            back.refused = left.value().refused;
            co_return back;
        }
        back.left_as = std::move(left.value().checkpoint.id);
        left_files = kept_.files_of(*back.left_as);
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
    kept_.set_origin(order.checkpoint);
    if (order.reseed) {
        settled_.reset();
    } else {
        settle(order.checkpoint);
    }
    Status restored = co_await restore_files(files, std::move(left_files), back);
    if (restored.has_error()) {
        co_return std::move(restored).error();
    }
    ready_.begin(order.checkpoint);
    co_return back;
}

/// After the memory: the interpreter that was left writes no more, and the other one begins nothing
/// yet. What cannot be put back is in the checkpoint of the state that was left.
boost::asio::awaitable<Status> SessionCheckpoints::restore_files(
    Kept target, Kept left, RolledBack& back) {
    auto restored = co_await kept_.restore(std::move(target), std::move(left));
    if (restored.has_error()) {
        co_return std::move(restored).error();
    }
    back.files_written = restored.value().written;
    back.files_removed = restored.value().removed;
    back.files_failed = restored.value().failed;
    for (auto& failure : restored.value().failures) {
        back.failures.push_back({std::move(failure.path), std::move(failure.why)});
    }
    co_return ok();
}

/// Before anything is killed: a copy that does not fork costs nothing but itself.
boost::asio::awaitable<Result<WokenProcess>> SessionCheckpoints::wake(std::string id, bool reseed) {
    // The sleepers' cgroup becomes the interpreter's.
    co_await hooks_.starter.wait_moved();
    co_await wait_departed();
    // The interpreter takes over the cgroup that the fork of another copy would be left in.
    std::string wanted = id;
    (void)co_await ready_.let_go(std::move(wanted));
    const auto copy = kept_.copy_of(id);
    if (!copy) {
        co_return unknown(id);
    }
    BOOST_OUTCOME_CO_TRY(auto channels, make_channels());
    const ChannelEnds theirs = std::move(channels.theirs);
    BOOST_OUTCOME_CO_TRY(hooks_.give_outputs(theirs.stdout_fd, theirs.stderr_fd));
    const SleepingCopy::Ends ends{
        theirs.stdout_fd.get(), theirs.stderr_fd.get(), theirs.link.get()};
    const auto forked = co_await copy->wake(ends, reseed, limits::kCopyPatience);
    if (forked.has_error() && forked.error().code() != ErrorCode::kSystem) {
        kept_.forget(id, Gone::kDied);  // it does not do what it should, and may not be what it was
        co_return unknown(id);
    }
    if (forked.has_error()) {
        co_return forked.error();
    }
    WokenProcess woken{forked.value(), std::move(channels.ours)};
    const Checkpoint* const target = kept_.tree().find(id);
    woken.runs_by_itself = target != nullptr && (target->carried_threads > 0 || target->goes_on);
    co_return woken;
}

std::optional<Checkpoint> SessionCheckpoints::find_newest() const {
    const auto& all = kept_.tree().list();
    return closed_ || working_ || all.empty() ? std::nullopt : std::optional(all.back());
}

boost::asio::awaitable<Result<WokenProcess>> SessionCheckpoints::revive(std::string id) {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(begin_work());
    const Work work(*this);
    co_return co_await wake(std::move(id), false);
}

void SessionCheckpoints::go_on_from(const std::string& id) {
    if (kept_.tree().find(id) != nullptr) {
        kept_.set_origin(id);
        settle(id);
    }
}

Status SessionCheckpoints::remove(const std::string& id) {
    if (kept_.tree().find(id) == nullptr) {
        return unknown(id);
    }
    kept_.forget(id, Gone::kDeleted);
    return ok();
}

boost::asio::awaitable<checkpoint::CheckpointList> SessionCheckpoints::list() {
    const auto session = keep_session_();
    // What is under way wants the fork, or makes others. And who only looks wakes nothing that is
    // paused.
    if (working_ || hooks_.is_paused()) {
        co_return co_await kept_.list();
    }
    // What a copy shares with a fork of itself is not seen to be its own.
    const auto former = co_await ready_.let_go();
    auto all = co_await kept_.list();
    if (former && !working_) {
        ready_.begin(*former);
    }
    co_return all;
}

void SessionCheckpoints::on_worker_exit(const sandbox::WorkerExit& exit) {
    if (const auto id = kept_.find_worker(exit.id)) {
        kept_.forget(*id, Gone::kDied);
    }
}

void SessionCheckpoints::close() {
    closed_ = true;
    ready_.close();
    kept_.close();
}

}  // namespace cellkeep::session
