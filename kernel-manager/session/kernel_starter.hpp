// SPDX-License-Identifier: Apache-2.0
//
// Starts the interpreters of one session in its sandbox: each with its language's command, in the
// session's directory, with the session's environment. Owned by the session; what it starts is its
// caller's. io_context thread only.
#pragma once

#include "kernel-manager/kernel/interpreter.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/kernel/process/kernel_process.hpp"
#include "kernel-manager/kernel/process/worker_starts.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/session/checkpoints/departure.hpp"
#include "kernel-manager/session/checkpoints/sleeper_moves.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

/// What is the session's own about its interpreters; a spare gets it when it is handed out.
struct OwnStart {
    std::map<std::string, std::string> env;
    /// Relative to the workspace; empty: the workspace.
    std::string working_directory;
};

/// The whole environment of an interpreter, as "NAME=value": the language's, then the session's,
/// which replaces it, then what the server says itself. rehearses: there is time to warm up
/// (kernels/python/cellkeep_kernel/rehearsal.py).
std::vector<std::string> make_environment(
    const KernelSpec& spec,
    const std::map<std::string, std::string>& own,
    const std::string& session_id,
    const SessionLimits& limits,
    bool rehearses);

/// The directory of the session's interpreters, absolute and inside; made if it is missing. The
/// workspace, if there is none or the guest has put something else in its place: better than no
/// interpreter.
std::string prepare_working_directory(
    const sandbox::Workspace& workspace, const std::string& wanted);

struct SessionSetup;

class KernelStarter {
 public:
    /// Sandbox, workspace and setup stay where they are; the limits may change. departed: nothing
    /// is left of an interpreter that begin_departure() has ended. keep_session is called before
    /// each call into what the session owns.
    KernelStarter(
        boost::asio::io_context& io,
        sandbox::Sandbox& sandbox,
        const sandbox::Workspace& workspace,
        const SessionSetup& setup,
        std::function<void()> departed,
        KeepAlive keep_session);
    KernelStarter(const KernelStarter&) = delete;
    KernelStarter& operator=(const KernelStarter&) = delete;
    ~KernelStarter() = default;

    struct Order {
        const KernelSpec& spec;
        const OwnStart& own;
        sandbox::WorkerGroup group = 0;  // 0: the session's own language, which a zygote may have
        bool spare = false;              // it has time to warm up before a client has it
    };
    /// Returns at once; the process is started as WorkerStarts does it. Errors are those of
    /// WorkerStarts::begin() and of making sockets and pipes.
    Result<std::unique_ptr<Interpreter>> start(const Order& order, Interpreter::Events events);
    /// The same of a process that is there and waits for its first message.
    Result<std::unique_ptr<Interpreter>> take_over(
        WokenProcess woken, sandbox::WorkerGroup group, Interpreter::Events events);
    /// The same of one that another program in this process has left.
    Result<std::unique_ptr<Interpreter>> go_on(
        PassedInterpreter passed, Interpreter::Events events);
    /// A start is under way or waits.
    bool is_starting() const { return starts_.is_starting(); }
    /// No copy is on its way out of the interpreter's cgroup, or has to go.
    bool are_sleepers_at_rest() const { return sleepers_.is_at_rest(); }
    /// Ends the interpreter of the session's own language with all that it has started, for one
    /// that goes on from a copy: Departure::begin(). False, too, if the session has no room for
    /// both.
    bool begin_departure(Departure::Halted halted);
    void end_departure() { departure_.end(); }
    bool is_departing() const { return departure_.is_under_way(); }
    /// A process has ended.
    void note_exit() { departure_.look(); }
    /// The session has ended: no departure is waited for.
    void close() { departure_.close(); }
    /// Starts any other process. As WorkerStarts::begin(); but while an interpreter departs,
    /// nothing is started.
    Result<std::shared_ptr<WorkerStart>> start_other(
        sandbox::WorkerSpec spec, WorkerStart::Done done);
    /// Makes a worker of kSleepingGroup of a process that one of a group has forked: the
    /// interpreter, or another copy. As WorkerStarts::begin().
    Result<std::shared_ptr<WorkerStart>> adopt_copy(
        pid_t forked, sandbox::WorkerGroup born_in, WorkerStart::Done done);
    /// Before anything is forked from a copy: until all copies are where what they fork is looked
    /// for.
    boost::asio::awaitable<void> wait_moved() { return sleepers_.wait(); }
    /// A copy that is where it should be, of another program in the server's process.
    void note_sleeper(const UniqueFd& pidfd) { sleepers_.add(pidfd); }

 private:
    Status give_way();

    boost::asio::io_context& io_;
    sandbox::Sandbox& sandbox_;
    const sandbox::Workspace& workspace_;
    const SessionSetup& setup_;
    Departure departure_;
    SleeperMoves sleepers_;
    WorkerStarts starts_;
};

}  // namespace cellkeep::session
