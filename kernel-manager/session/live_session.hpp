// SPDX-License-Identifier: Apache-2.0
//
// The Session that Service makes: a sandbox with one kernel process, a queue in front of it,
// deadlines over it, a journal behind it. One request is with the kernel at a time; everything else
// waits here, so that a death, a deadline or an abort can answer each request exactly once.
// Sources: live_session.cpp (the interface), live_session_executions.cpp
// (executions of agents), live_session_requests.cpp (queue and deadlines),
// live_session_limits.cpp (limits, budgets and refusals), live_session_control.cpp (what the server
// answers itself), live_session_debug.cpp (what goes to the kernel past the queue),
// live_session_kernel.cpp (birth of the interpreter and what it says), live_session_death.cpp (its
// death and restart), live_session_life.cpp (hand-out of a spare, culling, the end),
// live_session_update.cpp (what may change), live_session_rest.cpp (when it is frozen).
#pragma once

#include "kernel-manager/egress/gateway.hpp"
#include "kernel-manager/session/activity.hpp"
#include "kernel-manager/session/artifact_collector.hpp"
#include "kernel-manager/session/completion.hpp"
#include "kernel-manager/session/connected_clients.hpp"
#include "kernel-manager/session/death_notice.hpp"
#include "kernel-manager/session/debug_requests.hpp"
#include "kernel-manager/session/execution_book.hpp"
#include "kernel-manager/session/file_writing.hpp"
#include "kernel-manager/session/idle_freezer.hpp"
#include "kernel-manager/session/inputs_directory.hpp"
#include "kernel-manager/session/kernel_catalog.hpp"
#include "kernel-manager/session/kernel_process.hpp"
#include "kernel-manager/session/request_queue.hpp"
#include "kernel-manager/session/restart_budget.hpp"
#include "kernel-manager/session/run_guard.hpp"
#include "kernel-manager/session/saved_texts.hpp"
#include "kernel-manager/session/server_messages.hpp"
#include "kernel-manager/session/session.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

class LiveSession final : public Session, public std::enable_shared_from_this<LiveSession> {
 public:
    struct Setup {
        std::string id;
        std::string kernel_id;
        SessionOptions options;
        KernelSpec spec;
        std::shared_ptr<egress::Gateway> gateway;     // null: the server gives no network
        std::shared_ptr<egress::SessionProxy> proxy;  // null: this session has none
        std::chrono::milliseconds start_timeout{0};
        /// At rest for so long, the sandbox is frozen until it is needed; 0: never.
        std::chrono::seconds freeze_after{0};
        std::function<void(bool frozen)> log_frozen;  // may be empty
        /// A client asked for shutdown, the session is idle or old, or it is a spare that died: the
        /// Service removes it.
        std::function<void(Death)> on_end_requested;
        /// One line for the server's log.
        std::function<void(const std::string&)> log;
        /// A run ended with a limit; the execution's id is empty for a Jupyter client's.
        std::function<void(const std::string& execution_id, const LimitHit&)> log_limit;
        /// Reads what executions leave.
        std::shared_ptr<WorkThread> work_thread;
        /// Reads the operator's inputs, whose disk may stall: nothing else waits for it.
        std::shared_ptr<WorkThread> inputs_thread;
        std::shared_ptr<const InputsDirectory> inputs;  // null: there is none
        Inputs mounted;                                 // of them, in this sandbox
        /// Made in advance, for nobody: neither culled nor restarted until adopt().
        bool spare = false;
    };

    static std::shared_ptr<LiveSession> create(
        boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox);
    LiveSession(const LiveSession&) = delete;
    LiveSession& operator=(const LiveSession&) = delete;
    ~LiveSession() override;

    /// Puts the files in place, starts the kernel and waits until it has answered.
    boost::asio::awaitable<Status> start();

    /// Makes a spare somebody's: files, variables and directory are put in place, everything else
    /// that options say is in force from now on. Options that its sandbox was made with must be
    /// equal. After a failure the session is only good for close().
    boost::asio::awaitable<Status> adopt(std::string kernel_id, SessionOptions options);
    /// Whose end is announced from now on.
    void set_on_end_requested(std::function<void(Death)> callback) {
        setup_.on_end_requested = std::move(callback);
    }
    const SessionOptions& options() const { return setup_.options; }
    /// Which made its sandbox; null: none did.
    std::shared_ptr<sandbox::Zygote> zygote() const { return sandbox_.zygote(); }
    /// The first half of close(): everything is answered and told, nothing is torn down yet.
    void end_conversation(const Death& reason);
    /// Ends everything inside without waiting; close() does the rest.
    void kill_inside() { sandbox_.begin_destroy(); }
    /// After close(): removes what the host has not let go of yet, if anything. Blocks as
    /// sandbox::Sandbox::destroy does.
    Status remove_leftovers(std::chrono::milliseconds patience) {
        return sandbox_.destroy(patience);
    }

    const std::string& id() const override { return setup_.id; }
    const std::string& kernel_id() const { return setup_.kernel_id; }
    SessionInfo info() const override;
    KernelState state() const override { return state_; }
    void submit(protocol::Message request, std::shared_ptr<ReplySink> origin) override;
    void subscribe(OutputObserver* observer) override;
    void unsubscribe(OutputObserver* observer) override;
    void resume_output() override;
    const OutputJournal& journal() const override { return journal_; }
    std::shared_ptr<void> connect_client() override { return clients_.add(); }
    void set_connection_file(std::string path) override { connection_file_ = std::move(path); }
    Result<std::shared_ptr<Execution>> begin(ExecutionRequest request) override;
    std::shared_ptr<Execution> find_execution(const std::string& execution_id) const override;
    std::vector<std::shared_ptr<Execution>> list_executions() const override;
    Status interrupt_execution(const std::string& execution_id) override;
    Status interrupt() override;
    boost::asio::awaitable<Status> restart() override;
    Status update(const SessionUpdate& wanted) override;
    std::optional<Refusal> refusal() const override {
        return guard_.refuse_agent(setup_.options.limits, std::chrono::steady_clock::now());
    }
    Result<sandbox::Workspace> workspace() override;
    const Inputs& inputs() const override { return setup_.mounted; }
    Result<sandbox::Workspace::OpenedFile> open_input(const std::string& path) const override;
    void touch() override;
    void close(Death reason) override;

 private:
    /// The request that is with the kernel.
    struct Current {
        PendingRequest request;
        std::chrono::steady_clock::time_point started_at;
        std::chrono::microseconds cpu_at_start{0};
        std::chrono::microseconds cpu_at_end{0};
        bool peak_is_own = false;  // the memory's peak counts from its start
        bool replied = false;
        bool input_requested = false;
        /// The files that come with it, while they are put in place: its code has not been sent.
        std::shared_ptr<FileWriting> writing = nullptr;
        std::optional<Error> refused = std::nullopt;  // why they could not be
        bool sent = false;
        bool begun = false;              // the kernel has said busy
        bool interrupt_at_busy = false;  // a kernel ignores an interrupt before that
        Cut cut = Cut::kNone;
        std::optional<LimitHit> hit = std::nullopt;  // known when the interpreter has said idle
        std::uint64_t number = 0;  // so that a late timer cannot hit the next request
    };

    LiveSession(boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox);

    // live_session.cpp
    Status check_execution(const ExecutionRequest& request) const;
    void complete(TrackedExecution& tracked, ExecutionResult result);
    ExecutionMetrics measure(const Current& current) const;

    // live_session_executions.cpp
    Result<std::shared_ptr<Execution>> enqueue(ExecutionRequest request, std::string digest);

    // live_session_artifacts.cpp
    Status write_files(std::vector<InputFile> files);
    Status check_places(const std::vector<InputFile>& files) const;
    void place_files();
    void on_files_placed(std::uint64_t number);
    void finish_unsent();
    void complete_with_artifacts(
        const std::shared_ptr<TrackedExecution>& tracked, ExecutionResult result);

    // live_session_requests.cpp
    void submit_shell(protocol::Message request, std::shared_ptr<ReplySink> origin);
    void submit_input_reply(const protocol::Message& reply);
    void refuse(
        protocol::Message request,
        std::shared_ptr<ReplySink> origin,
        std::string ename,
        std::string evalue);
    bool is_current(std::uint64_t number) const;
    void dispatch_next();
    void send_current();
    void arm_deadlines();
    void check_cpu(std::chrono::microseconds now);
    void cut_short(Cut cut);
    void count_output(std::uint64_t bytes);
    void settle_limits(const std::optional<Death>& death);
    sandbox::Usage counters_or_nothing() const;
    Status send_interrupt();
    void on_reply(const protocol::Message& reply);
    void on_input_request(const protocol::Message& request);
    void finish_current();
    void abort_followers(const protocol::Message& failed);

    // live_session_control.cpp
    void submit_control(protocol::Message request, std::shared_ptr<ReplySink> origin);
    void answer_control(const protocol::Message& request, const std::shared_ptr<ReplySink>& asker);
    void repeat_busy();
    void answer_waiting_for_info();
    void answer_shutdown(const protocol::Message& request, ReplySink& origin);
    nlohmann::json make_usage();
    protocol::Message answer_replay(const protocol::Message& request) const;

    // live_session_life.cpp
    void watch_life();
    bool is_tracked_running() const;

    // live_session_rest.cpp
    std::chrono::seconds freeze_after() const;
    bool is_at_work() const;
    IdleFreezer::Hooks freezer_hooks();

    // live_session_debug.cpp
    bool has_debugger() const;
    void submit_debug(const protocol::Message& request, std::shared_ptr<ReplySink> origin);
    void refuse_debug(
        const protocol::Message& request, ReplySink& origin, const std::string& message);
    void fail_debug_requests(const std::string& text);

    // live_session_kernel.cpp
    void change(KernelEvent event);
    Status launch_kernel();
    std::string prepare_working_directory();
    void on_ready(const protocol::Message& kernel_info);
    void on_kernel_message(protocol::Message message);
    void on_iopub(protocol::Message message);
    void on_kernel_text(OutputStream stream, std::string_view text);
    void on_link_closed(const Error& error);
    void publish(protocol::Message message);
    void watch_sandbox();
    void take_sandbox_events();
    Result<std::optional<sandbox::SandboxEvent>> next_sandbox_event();
    void take_denials();

    // live_session_death.cpp
    void kill_kernel(Death why);
    void begin_restart();
    void stay_dead(const Status& status, const protocol::Message* parent, const Death& death);
    void on_kernel_exit(const sandbox::WorkerExit& exit);
    void await_end();
    void tell_end();
    void give_up_on_end();
    void on_swept();
    Death coming_death() const;
    Death classify(const sandbox::WorkerExit& exit);
    void lose_kernel(const Death& death);
    void fail_current(const Death& death, const std::string& text);
    void fail_waiting(const Death& death, const std::string& text);
    void fail_request(PendingRequest& request, const Death& death, const std::string& text);
    void restart_kernel(const protocol::Message* parent, const Death& death);
    bool may_restart(const Death& death);
    void settle_ready(const Status& status);
    std::string describe_end(const Death& death, Aftermath aftermath) const;

    boost::asio::io_context& io_;
    Setup setup_;
    sandbox::Sandbox sandbox_;
    sandbox::Workspace workspace_;  // a view of sandbox_
    boost::asio::posix::stream_descriptor sandbox_events_;
    ServerMessages messages_;
    OutputJournal journal_;
    std::vector<OutputObserver*> observers_;

    KernelState state_ = KernelState::kStarting;
    std::unique_ptr<KernelProcess> process_;
    std::optional<Death> kill_reason_;  // why we killed the present process
    /// The present process has ended of this, and what it has left running is being killed.
    std::optional<Death> ended_;
    /// Whether there will be another process, once that was told or decided.
    std::optional<bool> restarts_after_;
    std::optional<protocol::Message> told_;  // whose cell has been told of the end
    std::optional<Death> death_;             // of the last process, while there is none
    std::string ready_probe_id_;             // msg_id of our first kernel_info_request
    std::optional<nlohmann::json> kernel_info_;
    std::shared_ptr<Completion<Status>> ready_;           // of the present process
    std::shared_ptr<Completion<Status>> restart_waiter_;  // of whoever asked for a restart
    std::string adopt_request_id_;                        // msg_id of our adopt request
    std::shared_ptr<Completion<Status>> adopted_;         // while it is with the kernel
    boost::asio::steady_timer start_timer_;
    RestartBudget restart_budget_;
    std::uint64_t oom_kills_seen_ = 0;
    std::uint64_t restarts_ = 0;
    std::string stderr_tail_;  // of a kernel that has not become ready

    RunGuard guard_;
    std::deque<sandbox::SandboxEvent> postponed_events_;  // seen while taking denials

    RequestQueue queue_;
    DebugRequests debug_requests_;
    std::optional<Current> current_;
    std::string last_parent_header_ = "{}";  // of the newest request: whose output a pipe's text is
    std::vector<std::pair<protocol::Message, std::shared_ptr<ReplySink>>> waiting_for_info_;
    boost::asio::steady_timer wall_timer_;
    boost::asio::steady_timer cpu_timer_;
    boost::asio::steady_timer uncork_timer_;
    boost::asio::steady_timer kill_timer_;
    std::uint64_t next_number_ = 1;
    bool draining_ = false;           // taking the last words of a process that has ended
    bool ignore_congestion_ = false;  // while a deadline or an interrupt must get through

    std::uint64_t executions_ = 0;
    ExecutionBook book_;
    std::shared_ptr<ArtifactCollector> artifacts_;  // of workspace_
    SavedTexts saved_texts_;

    std::chrono::system_clock::time_point created_at_;
    std::chrono::steady_clock::time_point created_steady_;
    Activity activity_;
    ConnectedClients clients_;
    boost::asio::steady_timer life_timer_;
    bool life_blocked_ = false;  // something keeps the session: its end wakes watch_life()
    IdleFreezer freezer_;
    std::string connection_file_;
    /// What make_usage() saw last, for the rate since then.
    std::chrono::steady_clock::time_point usage_seen_at_;
    std::chrono::microseconds usage_seen_cpu_{0};
    bool closed_ = false;
};

}  // namespace cellkeep::session
