// SPDX-License-Identifier: Apache-2.0
//
// The kernel of one language in one session, over all its lives: starting, idle, busy, dead,
// restarting (kernel_state.hpp). Owns the parts that it is made of and connects them; each does its
// part and knows the others by their interfaces only:
//   ProcessSupervisor   its process: start, end, restart
//   RequestDispatcher   what waits for it
//   CurrentRun          the one request that is with it
//   RunWatch            the limits over that request
//   ExecutionFiles      the files that come with an execution, and those that it leaves
//   KernelOutput        what is said of it, on its way out
//   ControlResponder    what the server answers in its place
//   DebugRouter         the debug requests that pass the queue by
// What it needs of its session is passed in small pieces, and lives longer than the kernel does.
// Sources: supervised_kernel.cpp (the interface), supervised_kernel_parts.cpp (how the parts are
// connected). io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/control_responder.hpp"
#include "kernel-manager/kernel/current_run.hpp"
#include "kernel-manager/kernel/debug_router.hpp"
#include "kernel-manager/kernel/execution_files.hpp"
#include "kernel-manager/kernel/interpreter.hpp"
#include "kernel-manager/kernel/kernel_output.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/process/process_supervisor.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/kernel/request_dispatcher.hpp"
#include "kernel-manager/kernel/request_queue.hpp"
#include "kernel-manager/kernel/run_watch.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "kernel-manager/output/output_fanout.hpp"
#include "kernel-manager/session/activity.hpp"
#include "kernel-manager/session/kernel_starter.hpp"
#include "kernel-manager/session/usage_meter.hpp"
#include "protocol/message.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {

/// A kernel on its way from one program in the server's process to another.
struct PassedKernel {
    PassedProcess process;
    std::string text_parent;  // KernelOutput
    std::uint64_t begun = 0;
    std::optional<PassedRun> run;            // nothing runs
    std::vector<PassedRequest> waiting;      // behind what runs, in order
    std::optional<protocol::Message> shown;  // text of it that waits for front ends
};

class SupervisedKernel {
 public:
    /// Which kernel it is.
    struct Identity {
        std::string session_id;
        KernelSpec spec;
        /// 0: the session's own language, whose kernel front ends see.
        sandbox::WorkerGroup group = 0;
        /// From the start of a process to its first answer.
        std::chrono::milliseconds start_timeout{0};
        OwnStart own;
        /// Made in advance: not restarted until adopt().
        bool spare = false;
    };

    /// What it asks of the sandbox that it shares with the session's other kernels. None is empty.
    struct Sandbox {
        std::function<Result<std::unique_ptr<Interpreter>>(
            const KernelStarter::Order&, Interpreter::Events)>
            start;
        /// The same of a process that is there.
        std::function<Result<std::unique_ptr<Interpreter>>(WokenProcess, Interpreter::Events)>
            take_over;
        /// The same of one that another program in this process has left. Empty: there is no other.
        std::function<Result<std::unique_ptr<Interpreter>>(PassedInterpreter, Interpreter::Events)>
            go_on = nullptr;
        /// What goes on after an interpreter that has just died by itself; nullopt: a fresh one.
        /// revive() begins it: on_revived() is called later.
        std::function<std::optional<RestoredState>()> find_revival;
        std::function<void(const RestoredState&)> revive;
        /// The directory of its session's interpreters, absolute and inside; made if missing.
        std::function<std::string(const std::string& wanted)> prepare_directory;
        /// Kills what its process, which has ended, left running; on_swept() is called when that is
        /// over.
        std::function<Status()> begin_sweep;
        /// Returns whether nothing can start at present, because everything is being swept: then
        /// launch_or_die() is called when that is over.
        std::function<bool()> postpones_launch;
        /// What the sandbox has refused until now is passed to on_denied() of all kernels.
        std::function<void()> take_denials;
        /// Begins the high-water mark of the memory anew. False: another kernel runs something, or
        /// it cannot be done.
        std::function<bool()> restart_memory_peak;
        /// Bytes; nullopt if unknown.
        std::function<std::optional<std::uint64_t>()> memory_peak;
        /// Thaws what is inside, before anything is asked of it.
        std::function<void()> wake;
        /// ProcessSupervisor::Sandbox's.
        std::function<bool()> is_paused = [] { return false; };
        /// RunWatch::Counters'.
        std::function<std::chrono::nanoseconds(std::chrono::steady_clock::time_point)> paused_for =
            [](std::chrono::steady_clock::time_point /*now*/) {
                return std::chrono::nanoseconds(0);
            };
        /// ProcessSupervisor::Sandbox::halt.
        std::function<bool(std::function<void(bool)>)> halt = nullptr;
    };

    /// What its session may use, and has used. All stays where it is and may change.
    struct Budget {
        const SessionLimits& limits;
        SessionAccount& account;
        UsageMeter& usage;
        /// Of the requests that wait, for this kernel and others.
        std::size_t& queued_bytes;
    };

    /// Who sees what it says.
    struct Audience {
        Activity& activity;
        /// Front ends see the kernel of the session's own language, and no other.
        OutputFanout& front_ends;
    };

    /// What it reports to its session. None is empty; each may end the session.
    struct Owner {
        /// An execution's one answer.
        std::function<void(TrackedExecution&, ExecutionResult)> complete;
        /// There is no interpreter, and none follows by itself.
        std::function<void(const Death&)> on_left_dead;
        /// The sandbox was just used.
        std::function<void()> note_use;
        /// Something ended that may have kept the session from its end.
        std::function<void()> review_life;
        /// Nothing that waits is begun yet; dispatch() is called later.
        std::function<bool()> postpones_requests;
        /// Code has run for so long.
        std::function<void(std::chrono::steady_clock::duration)> note_run;
        /// A client asks for the session's end.
        std::function<void()> end_session;
        /// The content of a usage_reply.
        std::function<nlohmann::json()> make_usage;
        /// The tools of a Jupyter client's request. May be empty: there are none.
        std::function<OperatorAccess()> operator_access = nullptr;
    };

    /// The server's log. None is empty.
    struct Log {
        /// A line: what the session did.
        std::function<void(const std::string&)> line;
        /// A run ended with a limit; the execution's id is empty for a Jupyter client's.
        std::function<void(const std::string& execution_id, const LimitHit&)> limit;
    };

    SupervisedKernel(
        boost::asio::io_context& io,
        Identity identity,
        Sandbox sandbox,
        Budget budget,
        ExecutionFiles::Places files,
        Audience audience,
        Owner owner,
        Log log,
        KeepAlive keep_session);
    SupervisedKernel(const SupervisedKernel&) = delete;
    SupervisedKernel& operator=(const SupervisedKernel&) = delete;
    ~SupervisedKernel() = default;

    // --- life
    Status launch() { return process_.launch(); }
    /// The same with a process that is there. text: for clients, where it comes from.
    Status launch_from(WokenProcess woken, std::string text) {
        next_ = Next{std::move(woken), "branched", std::move(text)};
        return process_.launch();
    }
    /// The same if no caller waits for the result: a failure leaves it dead, and its requests are
    /// answered.
    void launch_or_die() { process_.launch_or_die(); }
    /// Until the launched interpreter has answered.
    boost::asio::awaitable<Status> wait_ready();
    /// The interpreter of a spare goes to a client, with what is the client's own.
    boost::asio::awaitable<Status> adopt(OwnStart own);
    /// Until a fresh interpreter has answered.
    boost::asio::awaitable<Status> restart() {
        revival_.reset();
        return process_.restart();
    }
    /// A copy of the interpreter, which sleeps (ProcessSupervisor::copy). kConflict if a request is
    /// with the kernel or waits for it, or it has no interpreter; requests that come meanwhile
    /// wait.
    boost::asio::awaitable<CopyRequest::Answer> copy(
        UniqueFd socket, checkpoint::OnThreads on_threads);
    /// Until the woken process, in place of the interpreter, has answered. What was running or
    /// queued is answered with an error. text: for clients, where the kernel has gone back to.
    boost::asio::awaitable<Status> go_back(WokenProcess woken, std::string text);
    /// Of Sandbox::revive(): the process that goes on, or why there is none; then a fresh one
    /// follows.
    void on_revived(Result<WokenProcess> woken);
    /// It can be copied now, but for requests that wait.
    bool is_at_rest() const;
    /// Nothing that waits is begun until release().
    void hold() { held_ = true; }
    void release();
    /// Requests that were begun, in all lives.
    std::uint64_t begun() const { return begun_; }
    /// The session has ended: nothing is begun, restarted or saved any more. Executions that wait
    /// for their files are answered.
    void close();
    /// After close(): every request is answered, and front ends learn that the kernel is dead.
    void end(const Death& reason);
    /// After close(), of a session that is being destroyed: front ends learn nothing.
    void mark_dead() { state_ = KernelState::kDead; }

    // --- its way to another program in the server's process
    /// It can be copied now, or it is dead for good, and nothing is half said. with_run: or it runs
    /// an execution that can pass, too (CurrentRun::can_pass), and so can all that wait behind it.
    bool can_pass(bool with_run) const;
    /// What executions that have not finished pass, in bytes.
    std::size_t passed_bytes() const { return run_.passed_bytes() + waiting_.bytes(); }
    /// There is no interpreter here any more. Precondition: can_pass().
    PassedKernel pass_on();
    /// Of an execution, by its id, with what it has for input(); it has recorded nothing.
    using MakeRecorder =
        std::function<ExecutionRecorder(const std::string& id, std::string stdin_text)>;
    /// In place of launch().
    Status go_on(PassedKernel passed, const MakeRecorder& make_recorder);

    // --- what clients ask; see Session
    void submit_control(protocol::Message request, std::shared_ptr<ReplySink> origin);
    void submit_input_reply(const protocol::Message& reply) { run_.take_input_reply(reply); }
    void submit_shell(protocol::Message request, std::shared_ptr<ReplySink> origin);
    /// Answers the request with an error, a little later.
    void refuse(
        protocol::Message request,
        std::shared_ptr<ReplySink> origin,
        std::string ename,
        std::string evalue);
    /// kConflict if it is dead.
    Status check_alive() const;
    /// kLimitExceeded at the queue's bounds. Call dispatch() afterwards.
    Status enqueue(PendingRequest request) {
        BOOST_OUTCOME_TRY(waiting_.push(std::move(request)));
        sandbox_.wake();  // what it waits for may stand still
        return ok();
    }
    /// Begins what waits, if it is free.
    void dispatch() { waiting_.dispatch(); }
    /// kConflict if there is no interpreter.
    Status interrupt();
    /// One execution that has not finished; nullopt if it is not here.
    std::optional<Status> interrupt_execution(const std::shared_ptr<Execution>& execution);

    // --- what the session reports to it
    void on_worker_exit(const sandbox::WorkerExit& exit);
    void on_swept() { process_.on_swept(); }
    void on_sandbox_died() { process_.on_sandbox_died(); }
    void on_denied(const sandbox::Denial& denial) { watch_.on_denied(denial); }
    /// Other kernels come: from now on a run is charged its own CPU time, where the kernels have
    /// counters of their own.
    void count_own_cpu() { watch_.count_own_cpu(); }
    /// Front ends can take more.
    void resume_reading() { process_.resume_reading(); }

    // --- how it is
    const KernelSpec& spec() const { return identity_.spec; }
    sandbox::WorkerGroup group() const { return identity_.group; }
    bool is_main() const { return identity_.group == 0; }
    /// There is a process, or what one has left running is being killed.
    bool has_process() const { return process_.has_process(); }
    /// Its interpreter has ended; what it left running may not have.
    bool has_ended() const { return process_.has_ended(); }
    bool is_running() const { return run_.is_running(); }
    KernelState state() const { return state_; }
    const std::optional<Death>& death() const { return process_.death(); }
    std::uint64_t restarts() const { return process_.restarts(); }
    /// See Session::question().
    std::optional<protocol::Message> question() const { return run_.question(); }
    std::size_t waiting() const { return waiting_.size(); }
    /// A request is with it or waits.
    bool is_busy() const { return run_.is_running() || waiting_.size() > 0; }
    /// It can be handed out.
    bool is_ready() const;
    /// Anything that a freeze would hold up.
    bool is_at_work() const;

 private:
    /// Nothing that was asked of it is under way.
    bool is_quiet() const {
        return !run_.is_running() && !files_.busy() && debugger_.size() == 0 &&
               !process_.is_copying();
    }
    // supervised_kernel_parts.cpp
    ProcessSupervisor::Settings process_settings() const;
    ProcessSupervisor::Sandbox process_sandbox(UsageMeter& usage);
    ProcessSupervisor::Listener process_listener();
    KernelOutput::Hooks output_hooks(Activity& activity);
    RunWatch::Counters run_counters(UsageMeter& usage) const;
    RunWatch::Owner watch_owner();
    ExecutionFiles::Owner files_owner();
    CurrentRun::Owner run_owner(Activity& activity);
    RequestDispatcher::Kernel dispatcher_kernel();
    ControlResponder::Kernel control_hooks();
    DebugRouter::Kernel debug_hooks();

    bool begin_revival();
    Result<std::unique_ptr<Interpreter>> start_process(Interpreter::Events events);
    void change(KernelEvent event);
    void publish(protocol::Message message) { output_.publish(std::move(message)); }
    void on_message(protocol::Message message);
    void on_ready();
    std::optional<protocol::Message> on_lost(const ProcessSupervisor::Loss& loss);
    Status check_debugger();
    void answer_waiting_for_info();
    bool await_failed_end();
    void on_failed_end();
    void answer_replay(const protocol::Message& request, ReplySink& origin) const;

    boost::asio::io_context& io_;
    Identity identity_;
    const Sandbox sandbox_;
    const Owner owner_;
    const Log log_;
    const KeepAlive keep_session_;
    const SessionLimits& limits_;
    SessionAccount& account_;
    OutputFanout& front_ends_;

    KernelState state_ = KernelState::kStarting;
    bool closed_ = false;
    bool held_ = false;
    std::uint64_t begun_ = 0;
    /// Of a rollback or a revival, until the next start.
    struct Next {
        WokenProcess process;
        std::string reason;
        std::string text;
    };
    std::optional<Next> next_;
    std::optional<RestoredState> revival_;  // of an interpreter that died, until the next start
    bool reviving_ = false;
    std::chrono::steady_clock::time_point begun_at_;
    ProcessSupervisor process_;
    KernelOutput output_;
    RunWatch watch_;
    ExecutionFiles files_;
    CurrentRun run_;
    RequestDispatcher waiting_;
    DebugRouter debugger_;
    ControlResponder control_;
    Alarm failed_end_;
};

}  // namespace cellkeep::session
