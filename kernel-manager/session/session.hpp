// SPDX-License-Identifier: Apache-2.0
//
// A session: one sandbox, the kernel in it, its limits, its output journal and the queue of what
// clients ask of it. Every front end works through this interface and knows nothing of sandboxes or
// links. All calls on the server's one io_context thread. Made by Service; alive while anyone holds
// the shared_ptr, but after close() every request is answered with an error.
#pragma once

#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/session/budgets.hpp"
#include "kernel-manager/session/circuit_breaker.hpp"
#include "kernel-manager/session/execution.hpp"
#include "kernel-manager/session/journal.hpp"
#include "kernel-manager/session/kernel_state.hpp"
#include "kernel-manager/session/limits.hpp"
#include "kernel-manager/session/not_offered.hpp"
#include "kernel-manager/session/refusal.hpp"
#include "kernel-manager/session/running_execution.hpp"
#include "kernel-manager/session/session_update.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/isolation.hpp"
#include "sandbox/workspace.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

/// Where the answers to one client's requests go. Called on the io_context thread, never from
/// inside submit(). The session keeps it alive until the request it came with is answered.
class ReplySink {
 public:
    ReplySink() = default;
    ReplySink(const ReplySink&) = delete;
    ReplySink& operator=(const ReplySink&) = delete;
    virtual ~ReplySink() = default;
    /// A reply (shell or control channel) or an input_request (stdin channel).
    virtual void deliver(const protocol::Message& message) = 0;
};

/// Sees every iopub message of a session, in order.
class OutputObserver {
 public:
    OutputObserver() = default;
    OutputObserver(const OutputObserver&) = delete;
    OutputObserver& operator=(const OutputObserver&) = delete;
    virtual ~OutputObserver() = default;
    virtual void on_output(const OutputEntry& entry) = 0;
    /// True while this observer cannot take more. The session stops reading its kernel until
    /// Session::resume_output(); the observer must bound how long that lasts
    /// (limits::kZmqStallMax).
    virtual bool congested() const { return false; }
};

struct EnvironmentInfo {
    std::string name;
    std::string digest;  // "sha256:…" of what the environment was locked to
};

/// When an idle session ends; its limits say how long idle is. As Jupyter Server counts it: looking
/// at a session (reconnecting, kernel_info, comm_info) is not activity.
struct CullRules {
    bool connected = false;  // also while clients are connected
    bool busy = false;       // also while a request runs
};

/// What is asked for when a session is created.
struct SessionOptions {
    /// The UUID that a Jupyter client wants as kernel id; empty: a fresh one. kConflict if taken.
    std::string kernel_id;
    /// Where the kernel starts, relative to the workspace; made if missing. Empty: the workspace.
    std::string working_directory;
    CullRules cull;
    std::string language = "python";
    std::string environment = "default";
    SessionLimits limits;
    /// Of a secret only its name is asked for; the Service fills in the rest.
    egress::NetworkPolicy network;
    std::map<std::string, std::string> env;
    std::vector<InputFile> files;
    nlohmann::json metadata = nlohmann::json::object();
    std::string owner;  // principal; front ends fill it in
};

/// One of the languages that a session offers: its own and those of which a further interpreter
/// starts in the same sandbox when code in it first comes.
struct LanguageInfo {
    std::string name;
    std::optional<KernelState> state;  // nothing: no code has come yet
    std::optional<Death> death;        // of its last interpreter, if that is dead
    std::uint64_t restarts = 0;
};

/// A session as anyone may see it, now.
struct SessionInfo {
    std::string id;                       // "ses_" and 24 hexadecimal digits
    std::string kernel_id;                // UUID: the same session for Jupyter front ends
    std::string language;                 // its own, in which front ends see its kernel
    std::vector<LanguageInfo> languages;  // its own first
    /// Why others do not run in it; null: nothing is known. Shared: it is asked for often.
    std::shared_ptr<const std::vector<NotOffered>> not_offered;
    KernelState state = KernelState::kStarting;
    bool frozen = false;         // its processes stand still until they are needed
    std::optional<Death> death;  // of the last kernel in its own language, if it is dead
    SessionLimits limits;
    egress::NetworkPolicy network;
    egress::Traffic traffic;  // zeros without a network
    EnvironmentInfo environment;
    sandbox::IsolationReport isolation;
    nlohmann::json metadata;
    std::string owner;
    std::chrono::system_clock::time_point created_at;
    std::chrono::system_clock::time_point last_activity;
    std::uint64_t executions = 0;      // accepted so far
    std::uint64_t restarts = 0;        // in all languages
    std::size_t connections = 0;       // of clients that said so with connect_client()
    std::string connection_file;       // empty: no ZeroMQ front
    std::uint64_t output_dropped = 0;  // journal entries no longer kept
    BudgetUse used;                    // what its life has cost so far
    CircuitInfo circuit;
};

class Session {
 public:
    Session() = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    virtual ~Session() = default;

    virtual const std::string& id() const = 0;
    virtual SessionInfo info() const = 0;
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
    /// The input_request that a client has been sent and has not answered yet; its parent is the
    /// request of the cell. Nothing if no cell waits for one.
    virtual std::optional<protocol::Message> question() const { return std::nullopt; }
    /// The ZeroMQ front says where its connection file is.
    virtual void set_connection_file(std::string path) = 0;

    // --- agent front ends
    // ----------------------------------------------------------------------------
    /// Accepts code or refuses it, at once. What is accepted ends in exactly one answer, within its
    /// deadline plus a grace, whatever the code does and whoever listens. A failing program is a
    /// successful execution; an Error means that nothing runs: kConflict (session closed, kernel
    /// dead for good), kLimitExceeded (queue, budget, circuit breaker), kInvalidArgument. An
    /// idempotency_key seen before gives the first execution again, running or finished;
    /// kInvalidArgument (in the field "idempotency_key") if it came with another request.
    /// Executions of one language run in the order in which they were accepted; those of others may
    /// run meanwhile. kInvalidArgument ("language: …") if that is not offered; kLimitExceeded
    /// ("language: …") beyond kSessionLanguagesMax.
    virtual Result<std::shared_ptr<Execution>> begin(ExecutionRequest request) = 0;
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

    /// Changes what may change, all of it or nothing. kInvalidArgument names the field, kConflict:
    /// the session's state or what it was made with forbids it.
    virtual Status update(const SessionUpdate& wanted) = 0;

    /// Why an execution of an agent would be refused now, if a budget or the circuit breaker is the
    /// reason; for whoever has just got kLimitExceeded and wants the numbers.
    virtual std::optional<Refusal> refusal() const { return std::nullopt; }

    /// For files. Valid until close().
    virtual Result<sandbox::Workspace> workspace() = 0;

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

    /// Counts as activity for idle culling, as a request does.
    virtual void touch() = 0;

    /// Ends everything: running and queued requests are answered with `reason`, the sandbox is
    /// destroyed. Idempotent. Service::remove calls it.
    virtual void close(Death reason) = 0;
};

}  // namespace cellkeep::session
