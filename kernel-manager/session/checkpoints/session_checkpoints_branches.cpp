// SPDX-License-Identifier: Apache-2.0
//
// What SessionCheckpoints have to do with other sessions and other programs: how a fork of a copy
// leaves for a branch, how a branch gets its files, how files are compared and merged, and their
// way to another program in the server's process.
#include "kernel-manager/session/checkpoints/branch_gate.hpp"
#include "kernel-manager/session/checkpoints/session_checkpoints.hpp"
#include "kernel-manager/session/checkpoints/session_work.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/shared/sleep_messages.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace cellkeep::session {

Result<sandbox::BranchPlace> SessionCheckpoints::find_branch_place(const std::string& id) const {
    const auto copy = kept_.copy_of(id);
    if (!copy) {
        return unknown(id);
    }
    return sandbox::find_place(copy->pidfd());
}

boost::asio::awaitable<Result<WokenProcess>> SessionCheckpoints::send_off(
    std::string id, bool reseed, BranchTarget target) {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(const auto work, begin_departure());
    const auto copy = kept_.copy_of(id);
    if (!copy) {
        co_return unknown(id);
    }
    hooks_.wake();
    co_await hooks_.starter.wait_moved();
    co_await ready_.wait();
    Kept files = kept_.files_of(id);
    auto versions = kept_.versions();
    Status taken = co_await target.take_files(std::move(files), std::move(versions));
    BOOST_OUTCOME_CO_TRY(std::move(taken));
    BOOST_OUTCOME_CO_TRY(auto channels, make_channels());
    const ChannelEnds theirs = std::move(channels.theirs);
    BOOST_OUTCOME_CO_TRY(target.give_outputs(theirs.stdout_fd, theirs.stderr_fd));
    BOOST_OUTCOME_CO_TRY(auto gate, make_socket_pair(SOCK_SEQPACKET));
    BOOST_OUTCOME_CO_TRY(set_nonblocking(gate.first.get()));
    const UniqueFd far = std::move(gate.second);
    std::vector<int> fds{
        theirs.stdout_fd.get(), theirs.stderr_fd.get(), theirs.link.get(), far.get()};
    for (const UniqueFd& one : target.namespaces) {
        fds.push_back(one.get());
    }
    auto left = co_await lead_out(copy, std::move(fds), std::move(gate.first), reseed);
    BOOST_OUTCOME_CO_TRY(const pid_t forked, std::move(left));
    WokenProcess leaving{forked, std::move(channels.ours)};
    leaving.stay = note_departure();
    co_return leaving;
}

Result<std::shared_ptr<SessionCheckpoints::Work>> SessionCheckpoints::begin_departure() {
    if (auto work = departing_.lock(); work && !closed_) {
        return work;
    }
    BOOST_OUTCOME_TRY(begin_work());
    auto work = std::make_shared<Work>(*this, Work::Interpreter::kFree);
    departing_ = work;
    return work;
}

std::shared_ptr<void> SessionCheckpoints::note_departure() {
    std::erase_if(departures_, [](const auto& one) { return one->done(); });
    const auto departed = std::make_shared<Completion<bool>>(io_);
    departures_.push_back(departed);
    return {nullptr, [departed](void*) { departed->set(true); }};
}

boost::asio::awaitable<void> SessionCheckpoints::wait_departed() {
    while (!departures_.empty()) {
        auto one = departures_.back();
        departures_.pop_back();
        (void)co_await Completion<bool>::wait(std::move(one));
    }
}

/// The fork of the copy is a worker of this sandbox until it has left. It lets its like behind: the
/// process that is in the branch is a fork of it.
boost::asio::awaitable<Result<pid_t>> SessionCheckpoints::lead_out(
    std::shared_ptr<SleepingCopy> copy, std::vector<int> fds, UniqueFd gate, bool reseed) {
    // Another process may leave it first, with the same patience.
    auto forked = co_await copy->wake_for_branch(std::move(fds), reseed, 2 * limits::kCopyPatience);
    BOOST_OUTCOME_CO_TRY(const pid_t leaving, std::move(forked));
    BOOST_OUTCOME_CO_TRY(
        auto adoption, Adoption::begin(io_, hooks_.starter, leaving, sandbox::kSleepingGroup));
    auto adopted = co_await Adoption::wait(std::move(adoption));
    BOOST_OUTCOME_CO_TRY(const sandbox::Worker worker, std::move(adopted));
    BOOST_OUTCOME_CO_TRY(const auto numbers, sandbox::numbers_of(worker.pidfd));
    hooks_.let_pass(numbers, sandbox::kLeavingCallsMax);
    auto passed = co_await pass_gate(io_, std::move(gate), limits::kCopyPatience);
    hooks_.let_pass(numbers, 0);
    // Ignored: ESRCH means that it has ended, as it should.
    (void)::syscall(SYS_pidfd_send_signal, worker.pidfd.get(), SIGKILL, nullptr, 0);
    co_return passed;
}

boost::asio::awaitable<Status> SessionCheckpoints::take_files(
    KeptCheckpoints::Files files, std::shared_ptr<checkpoint::FileVersions> source) {
    const auto session = keep_session_();
    begun_ = files;
    merge_base_ = std::make_shared<checkpoint::MergeBase>(checkpoint::MergeBase{files});
    auto restored = co_await kept_.restore_from(std::move(files), std::move(source));
    BOOST_OUTCOME_CO_TRY(const checkpoint::Restored done, std::move(restored));
    if (done.failed > 0) {
        co_return Error(
            ErrorCode::kUnavailable,
            "branch: " + std::to_string(done.failed) + " files could not be put in place, " +
                (done.failures.empty() ? "" : done.failures.front().path + ": ") +
                (done.failures.empty() ? "" : done.failures.front().why));
    }
    co_return ok();
}

boost::asio::awaitable<Result<checkpoint::FileChanges>> SessionCheckpoints::compare(
    checkpoint::ComparisonOrder order) {
    const auto session = keep_session_();
    Kept earlier = kept_.files_of(order.against);
    if (order.other) {
        earlier = order.other->manifest();
    } else if (order.begun) {
        earlier = begun_;
    }
    if (!earlier) {
        co_return Error::in_field(
            ErrorCode::kNotFound, "against", "the session has no checkpoint " + order.against);
    }
    if (order.later) {
        Kept later = kept_.files_of(*order.later);
        if (!later) {
            co_return unknown(*order.later);
        }
        co_return co_await kept_.compare(
            std::move(earlier), std::move(later), std::move(order.page));
    }
    BOOST_OUTCOME_CO_TRY(begin_work());
    const Work work(*this, Work::Interpreter::kFree);
    co_return co_await kept_.compare_with_now(std::move(earlier), std::move(order.page));
}

boost::asio::awaitable<Result<checkpoint::SessionFiles>> SessionCheckpoints::look_at_files() {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(begin_work());
    const Work work(*this, Work::Interpreter::kFree);
    auto held = co_await kept_.hold_now();
    BOOST_OUTCOME_CO_TRY(auto files, std::move(held));
    co_return checkpoint::SessionFiles{std::move(files), merge_base_};
}

/// No cell begins meanwhile. What runs already may change files, which the merge notices.
boost::asio::awaitable<Result<checkpoint::MergeAnswer>> SessionCheckpoints::merge(
    checkpoint::SessionFiles theirs, checkpoint::MergeOrder order) {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(begin_work());
    const Work work(*this);
    Kept base = theirs.base->files;
    auto held = theirs.held;
    auto merged = co_await kept_.merge(std::move(held), std::move(base), std::move(order));
    BOOST_OUTCOME_CO_TRY(auto answer, std::move(merged));
    if (answer.base) {
        theirs.base->files = answer.base;
    }
    co_return answer;
}

bool SessionCheckpoints::is_at_rest() const {
    const bool departed = std::all_of(
        departures_.begin(), departures_.end(), [](const auto& one) { return one->done(); });
    return !working_ && departed && ready_.is_at_rest() && kept_.is_at_rest();
}

std::vector<KeptCheckpoints::Files> SessionCheckpoints::manifests() const {
    std::vector<KeptCheckpoints::Files> all;
    for (const auto& [id, parts] : kept_.parts()) {
        all.push_back(parts.files);
    }
    if (begun_) {
        all.push_back(begun_);
    }
    if (merge_base_ && merge_base_->files != begun_) {
        all.push_back(merge_base_->files);
    }
    return all;
}

PassedCheckpoints SessionCheckpoints::pass_on() {
    closed_ = true;
    ready_.close();
    PassedCheckpoints passed = kept_.pass_on();
    passed.settled = settled_;
    passed.begun = begun_;
    passed.merge_base = merge_base_ ? merge_base_->files : nullptr;
    return passed;
}

Status SessionCheckpoints::go_on(PassedCheckpoints passed) {
    settled_ = passed.settled;
    begun_ = passed.begun;
    if (passed.merge_base) {
        merge_base_ =
            std::make_shared<checkpoint::MergeBase>(checkpoint::MergeBase{passed.merge_base});
    }
    BOOST_OUTCOME_TRY(kept_.go_on(std::move(passed)));
    for (const auto& [id, parts] : kept_.parts()) {
        hooks_.starter.note_sleeper(parts.copy->pidfd());
        if (parts.copy->is_ready()) {
            ready_.go_on(id);
        }
    }
    return ok();
}

}  // namespace cellkeep::session
