// SPDX-License-Identifier: Apache-2.0
//
// A session: one sandbox, the kernel in it, its limits, its output journal and the queue of what
// clients ask of it. Every front end works through this interface and knows nothing of sandboxes or
// links. All calls on the server's one io_context thread. Made by Service; alive while anyone holds
// the shared_ptr, but after close() every request is answered with an error.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "kernel-manager/checkpoint/files/file_merge.hpp"
#include "kernel-manager/checkpoint/files/held_files.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "kernel-manager/checkpoint/files/merge_plan.hpp"
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/execution/watch/tree_watch.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/limits/limit_refusal.hpp"
#include "kernel-manager/output/journal.hpp"
#include "kernel-manager/output/output_observer.hpp"
#include "kernel-manager/process/command_table.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/session/session_update.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

class Session {
 public:
    Session() = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    virtual ~Session() = default;

    virtual const std::string& id() const = 0;
    virtual SessionInfo info() const = 0;
    // Of its info(), which is much more to copy.
    virtual std::string owner() const { return info().owner; }
    virtual OfferedLanguages offered_languages() const { return languages_of(info()); }
    /// As in info(), for those who ask often.
    virtual KernelState state() const = 0;

    // --- Jupyter front ends
    // --------------------------------------------------------------------------
    /// Takes a message of the shell, control or stdin channel. Shell requests queue behind one
    /// another; control requests are answered at once, also by a busy kernel: kernel_info_request,
    /// interrupt_request, shutdown_request; what no kernel of ours supports gets an error reply or,
    /// where the specification says so, none. Every accepted request is answered exactly once
    /// through origin, also when the kernel dies; one that is not accepted (queue full, session
    /// closed) gets an error reply. An input_reply goes to the waiting cell if it is of the client
    /// whose cell it is, or names the question as its parent.
    virtual void submit(protocol::Message request, std::shared_ptr<ReplySink> origin) = 0;

    /// The observer must outlive the subscription.
    virtual void subscribe(OutputObserver* observer) = 0;
    virtual void unsubscribe(OutputObserver* observer) = 0;
    /// To be called by an observer that was congested and no longer is.
    virtual void resume_output() = 0;
    virtual const OutputJournal& journal() const = 0;
    /// Counts a connected client for as long as what it returns lives.
    virtual std::shared_ptr<void> connect_client() = 0;
    /// The same of a client that connects again by itself if its front end asks it to: the session
    /// may pass to another program of the server without it.
    virtual std::shared_ptr<void> connect_returning_client() { return connect_client(); }
    /// The input_request that a client has been sent and has not answered yet; its parent is the
    /// request of the cell. Nothing if no cell waits for one.
    virtual std::optional<protocol::Message> question() const { return std::nullopt; }
    /// The ZeroMQ front says where its connection file is.
    virtual void set_connection_file(std::string path) = 0;

    // --- agent front ends
    // ----------------------------------------------------------------------------
    /// Accepts code or refuses it, at once. What is accepted ends in exactly one answer, within its
    /// deadline plus a grace, whatever the code does and whichever clients listen. A failing
    /// program is a successful execution; an Error means that nothing runs: kConflict (session
    /// closed, kernel dead for good), kLimitExceeded (queue, budget, circuit breaker),
    /// kInvalidArgument. An idempotency_key seen before gives the first execution again, running or
    /// finished; kInvalidArgument (in the field "idempotency_key") if it came with another request.
    /// Executions of one language run in the order in which they were accepted; those of others may
    /// run meanwhile. kInvalidArgument ("language: …") if that is not offered; kLimitExceeded
    /// ("language: …") beyond kSessionLanguagesMax.
    virtual Result<std::shared_ptr<Execution>> begin(ExecutionRequest request) = 0;
    /// begin() of several that belong together: they follow one another, or the error of one is the
    /// error of all and none of them runs. Those that were accepted before it are then remembered
    /// as interrupted.
    virtual Result<std::vector<std::shared_ptr<Execution>>> begin_all(
        std::vector<ExecutionRequest> requests);
    /// begin() and the whole answer. Cancelling the coroutine does not cancel the run.
    boost::asio::awaitable<Result<ExecutionResult>> execute(ExecutionRequest request);
    /// Waiting, running, or finished and still remembered; else null.
    virtual std::shared_ptr<Execution> find_execution(const std::string& execution_id) const = 0;
    /// In the order in which they were accepted.
    virtual std::vector<std::shared_ptr<Execution>> list_executions() const = 0;
    /// As interrupt(), if it is this one that runs; takes a waiting one out of the queue.
    /// kNotFound; kConflict if it has finished.
    virtual Status interrupt_execution(const std::string& execution_id) = 0;

    /// SIGINT to the running code, in whatever languages. kConflict if no kernel lives. An idle one
    /// is not disturbed.
    virtual Status interrupt() = 0;
    /// A fresh interpreter of the session's own language in the same sandbox, with the same files;
    /// ready when this returns. What was running or queued in it is answered with an error. Other
    /// languages go on.
    virtual boost::asio::awaitable<Status> restart() = 0;
    /// The same of one language. kInvalidArgument ("language: …") if it is not offered, kConflict
    /// ("language: …") if no code in it has come yet.
    virtual Status interrupt_language(const std::string& language) = 0;
    virtual boost::asio::awaitable<Status> restart_language(const std::string& language) = 0;

    // --- checkpoints of the session's own language
    // ----------------------------------------------
    /// A copy of the interpreter, at the end of a cell, and of the files of the workspace, that can
    /// be gone back to. If nothing has happened since the last one, that one. kConflict: a cell
    /// runs or waits, or another checkpoint or rollback is under way; kLimitExceeded: there are as
    /// many as there may be, and all have labels. kTimeout, kProtocol, kUnavailable: the
    /// interpreter did not do what it should.
    virtual boost::asio::awaitable<Result<checkpoint::CheckpointMade>> make_checkpoint(
        checkpoint::CheckpointOrder order);
    virtual boost::asio::awaitable<checkpoint::CheckpointList> list_checkpoints();
    virtual bool has_checkpoint(const std::string& /*id*/) const { return false; }
    /// The files that differ between one state and a checkpoint, or now. kNotFound (in the field
    /// "against" or "checkpoint"); kConflict: another checkpoint, rollback, comparison or merge is
    /// under way; kUnavailable: the host has no room.
    virtual boost::asio::awaitable<Result<checkpoint::FileChanges>> compare_files(
        checkpoint::ComparisonOrder order);
    /// The files as they are now, for compare_files() or merge_files() of another session.
    /// kConflict, kUnavailable: as compare_files().
    virtual boost::asio::awaitable<Result<checkpoint::SessionFiles>> look_at_files();
    /// Takes the files of a branch, which has a base. kConflict, kUnavailable: as compare_files().
    virtual boost::asio::awaitable<Result<checkpoint::MergeAnswer>> merge_files(
        checkpoint::SessionFiles theirs, checkpoint::MergeOrder order);
    /// kNotFound.
    virtual Status remove_checkpoint(const std::string& id);
    /// Why a checkpoint that was there is not; nullopt for one that is there or unknown.
    virtual std::optional<checkpoint::Gone> find_gone_checkpoint(const std::string& /*id*/) const {
        return std::nullopt;
    }
    /// The interpreter goes on as it was at the checkpoint, and the files of the workspace are as
    /// they were; ready when this returns. What cannot be put back is named. What was
    /// running or queued in it is answered with an error. Unless order.discard, the state that is
    /// left becomes a checkpoint first, with the errors of make_checkpoint(). kNotFound: there is
    /// no such checkpoint, or its process has died.
    virtual boost::asio::awaitable<Result<checkpoint::RolledBack>> roll_back(
        checkpoint::RollbackOrder order);

    /// The commands that run in its sandbox beside the interpreters. Null: it can have none. Valid
    /// for as long as the session.
    virtual process::CommandTable* commands() { return nullptr; }

    /// Changes what may change, all of it or nothing. kInvalidArgument names the field, kConflict:
    /// the session's state or what it was made with forbids it.
    virtual Status update(const SessionUpdate& wanted) = 0;

    /// Why an execution of an agent would be refused now, if a budget or the circuit breaker is the
    /// reason: the numbers for a caller that has just got kLimitExceeded.
    virtual std::optional<LimitRefusal> refusal() const { return std::nullopt; }

    /// For files. Valid until close().
    virtual Result<sandbox::Workspace> workspace() = 0;
    /// A connection to a server that listens inside at 127.0.0.1, or else at ::1, and this port;
    /// its socket does not block. Counts as use and wakes what is frozen. kNotFound: nothing
    /// listens there; kPermissionDenied: the port is the sandbox's own; kTimeout: the server does
    /// not accept it; kConflict: the session has ended; kUnavailable.
    virtual boost::asio::awaitable<Result<UniqueFd>> connect_port(std::uint16_t port);

    /// As long as what it returns lives, the session is not frozen for being idle: a visitor waits
    /// for an answer of what runs inside. It may outlive the session.
    virtual std::shared_ptr<void> hold_awake() { return nullptr; }

    /// What happens to files from now on. It may outlive the session; nothing happens then. Errors
    /// as TreeWatch::open() and WatchRation::take(). kConflict: the session has ended.
    virtual Result<TreeWatch> watch_files(const std::string& path, TreeWatch::Depth depth);

    /// Files of the operator's inputs directory that are mounted into the workspace, read-only, for
    /// as long as the session lives: where they are there, and their names in the directory.
    using Inputs = std::map<std::string, std::string>;
    virtual const Inputs& inputs() const {
        static const Inputs none;
        return none;
    }
    /// The one that is mounted at this path. kNotFound if there is none.
    virtual Result<sandbox::Workspace::OpenedFile> open_input(const std::string& path) const {
        return Error(ErrorCode::kNotFound, "open(" + path + "): no input is mounted there");
    }

    /// Stops every process inside, whatever it does, until a client asks something of what is
    /// inside, or wake() is called: then `woken` is called once, unless it is empty or was given up
    /// for that of a later call. Returns before the last process stands still: a checkpoint or
    /// rollback that is under way is finished before. kConflict: the
    /// session has ended; kUnavailable: the host cannot do it, or the session's interpreter is just
    /// being started.
    virtual Status freeze(std::function<void()> woken);
    /// What freeze() stopped goes on. Does nothing in a session that is not frozen.
    virtual void wake() {}
    /// What everything inside uses now. kConflict: the session has ended; else as
    /// sandbox::Sandbox::usage().
    virtual Result<sandbox::Usage> usage() const;

    /// Counts as activity for idle culling, as a request does.
    virtual void touch() = 0;

    /// Ends everything: running and queued requests are answered with `reason`, the sandbox is
    /// destroyed. Idempotent. Service::remove calls it.
    virtual void close(Death reason) = 0;
};

}  // namespace cellkeep::session
