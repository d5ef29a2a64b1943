// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a session: makes them, goes back to them, lets them go. Owns what
// they consist of; asks its session for the rest. One piece
// of work at a time. What guests say on the way can only harm their own session: each process is
// taken by pid 1, which knows its children, and never by a number alone. io_context thread only.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "kernel-manager/checkpoint/files/held_files.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "kernel-manager/checkpoint/files/merge_plan.hpp"
#include "kernel-manager/kernel/process/copy_request.hpp"
#include "kernel-manager/kernel/process/kernel_process.hpp"
#include "kernel-manager/kernel/process/sleeping_copy.hpp"
#include "kernel-manager/session/checkpoints/adoption.hpp"
#include "kernel-manager/session/checkpoints/branch_seed.hpp"
#include "kernel-manager/session/checkpoints/kept_checkpoints.hpp"
#include "kernel-manager/session/checkpoints/ready_fork_keeper.hpp"
#include "kernel-manager/session/kernel_starter.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/server/branch_place.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

class SessionCheckpoints {
 public:
    /// What it asks of its session. None is empty; any may end the session.
    struct Hooks {
        /// SupervisedKernel::copy() and go_back() of the session's own language.
        std::function<boost::asio::awaitable<CopyRequest::Answer>(UniqueFd, checkpoint::OnThreads)>
            copy;
        std::function<boost::asio::awaitable<Status>(WokenProcess, std::string)> go_back;
        /// There is an interpreter whose state could be kept.
        std::function<bool()> has_interpreter;
        KernelStarter& starter;
        /// sandbox::Sandbox::give_outputs().
        std::function<Status(const UniqueFd&, const UniqueFd&)> give_outputs;
        /// FamilyMember::let_pass() of the session.
        std::function<void(const std::vector<pid_t>&, std::uint32_t)> let_pass;
        /// Thaws what is inside.
        std::function<void()> wake;
        /// ReadyForkKeeper::Hooks.
        std::function<bool()> is_paused;
        std::function<bool()> has_room;
        std::function<void()> settled;
        /// Between them the interpreter begins nothing that waits for it.
        std::function<void()> hold;
        std::function<void()> release;
        /// SupervisedKernel::begun() of the same kernel.
        std::function<std::uint64_t()> begun;
        /// The id of the newest execution of an agent's.
        std::function<std::optional<std::string>()> newest_execution;
    };

    SessionCheckpoints(
        boost::asio::io_context& io,
        Hooks hooks,
        KeptCheckpoints::Places places,
        KeepAlive keep_session);
    SessionCheckpoints(const SessionCheckpoints&) = delete;
    SessionCheckpoints& operator=(const SessionCheckpoints&) = delete;
    ~SessionCheckpoints() = default;

    // --- what clients ask; see Session
    boost::asio::awaitable<Result<checkpoint::CheckpointMade>> make(
        checkpoint::CheckpointOrder order);
    boost::asio::awaitable<Result<checkpoint::RolledBack>> roll_back(
        checkpoint::RollbackOrder order);
    Status remove(const std::string& id);
    /// After a death: the checkpoint that an interpreter can go on from, the newest; nullopt: none.
    std::optional<checkpoint::Checkpoint> find_newest() const;
    /// A process that goes on from it. go_on_from() when that is the interpreter.
    boost::asio::awaitable<Result<WokenProcess>> revive(std::string id);
    void go_on_from(const std::string& id);
    /// Where a branch of it is made. kNotFound, kUnavailable.
    Result<sandbox::BranchPlace> find_branch_place(const std::string& id) const;
    /// BranchSeed::come().
    boost::asio::awaitable<Result<WokenProcess>> send_off(
        std::string id, bool reseed, BranchTarget target);
    /// Files of the parent's checkpoint, for a branch that begins.
    boost::asio::awaitable<Status> take_files(
        KeptCheckpoints::Files files, std::shared_ptr<checkpoint::FileVersions> source);
    /// With their private memory.
    boost::asio::awaitable<checkpoint::CheckpointList> list();
    boost::asio::awaitable<Result<checkpoint::FileChanges>> compare(
        checkpoint::ComparisonOrder order);
    boost::asio::awaitable<Result<checkpoint::SessionFiles>> look_at_files();
    boost::asio::awaitable<Result<checkpoint::MergeAnswer>> merge(
        checkpoint::SessionFiles theirs, checkpoint::MergeOrder order);
    bool has(const std::string& id) const { return kept_.tree().find(id) != nullptr; }
    std::optional<checkpoint::Gone> find_gone(const std::string& id) const {
        return kept_.tree().find_gone(id);
    }

    // --- what the session reports to it
    void on_worker_exit(const sandbox::WorkerExit& exit);
    /// The interpreter was lost, and a fresh one follows.
    void on_fresh_interpreter() { kept_.set_origin(std::nullopt); }
    /// The session has ended: all copies are killed.
    void close();

    // --- their way to another program in the server's process
    /// KeptCheckpoints::is_at_rest(); and no process leaves for a branch.
    bool is_at_rest() const;
    const KeptCheckpoints& kept() const { return kept_; }
    /// The manifests of all checkpoints; of a branch, also what it was made with, and the base of
    /// its next merge, if that is another.
    std::vector<KeptCheckpoints::Files> manifests() const;
    /// As close(), but that the copies sleep on. Precondition: is_at_rest().
    PassedCheckpoints pass_on();
    /// Before anything is asked of it.
    Status go_on(PassedCheckpoints passed);

    // --- how they are
    bool is_working() const { return working_; }
    /// A copy is making or ending a fork, and no caller waits for it.
    bool is_getting_ready() const { return !ready_.is_at_rest(); }
    /// Something sleeps, or is on its way to.
    bool has_sleeping() const { return working_ || !kept_.empty(); }

 private:
    class Work;
    static Error unknown(const std::string& id);
    using Kept = KeptCheckpoints::Files;

    ReadyForkKeeper::Hooks ready_hooks();
    Status begin_work() const;
    Result<std::shared_ptr<Work>> begin_departure();
    boost::asio::awaitable<Result<checkpoint::CheckpointMade>> make_one(
        checkpoint::CheckpointOrder order, std::string kept);
    boost::asio::awaitable<std::optional<checkpoint::Checkpoint>> find_unchanged(
        std::optional<std::string> label);
    boost::asio::awaitable<Result<checkpoint::CheckpointMade>> copy(
        checkpoint::CheckpointOrder order, std::string kept);
    boost::asio::awaitable<Result<std::shared_ptr<SleepingCopy>>> find_asleep(
        std::shared_ptr<Adoption> adoption, UniqueFd socket, bool prepares);
    boost::asio::awaitable<Result<WokenProcess>> wake(std::string id, bool reseed);
    std::shared_ptr<void> note_departure();
    boost::asio::awaitable<void> wait_departed();
    boost::asio::awaitable<Result<pid_t>> lead_out(
        std::shared_ptr<SleepingCopy> copy, std::vector<int> fds, UniqueFd gate, bool reseed);
    boost::asio::awaitable<Status> restore_files(
        Kept target, Kept left, checkpoint::RolledBack& back);
    Result<checkpoint::CheckpointMade> keep(
        checkpoint::CheckpointOrder order,
        const checkpoint::Copied& copied,
        std::optional<std::string> victim,
        KeptCheckpoints::Parts parts);
    void settle(const std::string& id) { settled_ = Settled{id, hooks_.begun()}; }

    boost::asio::io_context& io_;
    const Hooks hooks_;
    const KeepAlive keep_session_;
    KeptCheckpoints kept_;
    ReadyForkKeeper ready_;
    using Settled = PassedCheckpoints::Settled;
    std::optional<Settled> settled_;
    Kept begun_;                                         // of a branch: what it was made with
    std::shared_ptr<checkpoint::MergeBase> merge_base_;  // of a branch
    /// Of processes that leave for branches, and may be in the sleepers' cgroup.
    std::vector<std::shared_ptr<Completion<bool>>> departures_;
    std::weak_ptr<Work> departing_;  // those that leave at the same time are one piece of work
    bool working_ = false;
    bool closed_ = false;
};

}  // namespace cellkeep::session
