// SPDX-License-Identifier: Apache-2.0
//
// One interpreter of a session over all its lives: the process, a queue in front of it, deadlines
// over what it runs. One request is with it at a time; everything else waits here, so that a
// death, a deadline or an abort can answer each request exactly once. What a session has once
// however many interpreters run in it is its session's (session_commons.hpp).
// Sources: kernel_lane.cpp (the interface), kernel_lane_requests.cpp (queue and deadlines),
// kernel_lane_limits.cpp (limits and output), kernel_lane_files.cpp (what comes with an execution
// and what it leaves), kernel_lane_control.cpp (what ControlResponder and DebugRouter ask of it),
// kernel_lane_process.cpp (birth of the interpreter and what it says), kernel_lane_death.cpp (its
// death and restart).
#pragma once

#include "kernel-manager/execution/artifacts/artifact_collector.hpp"
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/control_responder.hpp"
#include "kernel-manager/kernel/debug_router.hpp"
#include "kernel-manager/kernel/kernel_process.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/limit_monitor.hpp"
#include "kernel-manager/kernel/process_end.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/kernel/request_queue.hpp"
#include "kernel-manager/kernel/running_request.hpp"
#include "kernel-manager/kernel/server_messages.hpp"
#include "kernel-manager/limits/death_notice.hpp"
#include "kernel-manager/session/claimed_end.hpp"
#include "kernel-manager/session/session_commons.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::session {

class KernelLane {
 public:
    /// Host and commons must outlive it. Group 0 is the main lane's: the kernel that front ends
    /// see.
    KernelLane(LaneHost& host, SessionCommons& shared, KernelSpec spec, sandbox::WorkerGroup group);
    KernelLane(const KernelLane&) = delete;
    KernelLane& operator=(const KernelLane&) = delete;
    ~KernelLane() = default;

    // --- life
    Status launch();
    /// The same of a lane that nobody waits for by itself: a failure leaves it dead, and whoever
    /// waits in its queue is told.
    void launch_or_die();
    /// Until the launched interpreter has answered.
    boost::asio::awaitable<Status> wait_ready();
    /// The interpreter of a spare becomes somebody's.
    boost::asio::awaitable<Status> adopt();
    void begin_restart();
    /// begin_restart(), and until the fresh interpreter has answered.
    boost::asio::awaitable<Status> restart();
    /// The session ends: everybody is answered and told. The commons say closed already.
    void end(const Death& reason);
    /// Of a session that nobody holds any more: nothing is told.
    void mark_dead() { state_ = KernelState::kDead; }
    void close_artifacts() { artifacts_->close(); }

    // --- what clients ask; see Session
    void submit_control(protocol::Message request, std::shared_ptr<ReplySink> origin);
    void submit_input_reply(const protocol::Message& reply);
    void submit_shell(protocol::Message request, std::shared_ptr<ReplySink> origin);
    /// Answers the request with an error, a little later.
    void refuse(
        protocol::Message request,
        std::shared_ptr<ReplySink> origin,
        std::string ename,
        std::string evalue);
    /// kConflict if it is dead.
    Status check_alive() const;
    /// kLimitExceeded at the queue's bounds.
    Status enqueue(PendingRequest request);
    Status interrupt();
    /// One execution that has not finished; false if it is not here.
    bool interrupt_execution(const std::shared_ptr<Execution>& execution, Status& done);
    void dispatch_next();

    // --- what the session tells it
    void on_worker_exit(const sandbox::WorkerExit& exit);
    void on_swept();
    void on_sandbox_died();
    void on_denied(const sandbox::Denial& denial) { monitor_.on_denied(denial); }
    /// Other lanes come: from now on a run is charged its own CPU time, where that can be told
    /// apart.
    void count_own_cpu();
    /// Nobody who watches is congested any more.
    void resume_reading();

    // --- how it is
    const KernelSpec& spec() const { return spec_; }
    sandbox::WorkerGroup group() const { return group_; }
    bool is_main() const { return group_ == 0; }
    /// There is a process, or what one has left running is being killed.
    bool has_process() const { return process_ != nullptr; }
    /// Its interpreter has ended; what it left running may not have.
    bool has_ended() const { return end_.is_ended(); }
    bool is_running() const { return current_.has_value(); }
    KernelState state() const { return state_; }
    const std::optional<Death>& death() const { return death_; }
    std::uint64_t restarts() const { return restart_policy_.restarts(); }
    /// See Session::question().
    std::optional<protocol::Message> question() const {
        return current_.has_value() ? current_->question() : std::nullopt;
    }
    std::size_t waiting() const { return queue_.size(); }
    /// A request is with it or waits.
    bool is_busy() const { return current_.has_value() || queue_.size() > 0; }
    /// It can be handed out.
    bool is_ready() const { return process_ && !end_.is_ended() && state_ == KernelState::kIdle; }
    /// Anything that a freeze would hold up.
    bool is_at_work() const;

 private:
    const SessionLimits& session_limits() const { return shared_.limits(); }
    /// Keeps the session, and so the lane; null while the session is being destroyed.
    std::shared_ptr<KernelLane> hold() { return {host_.hold(), this}; }
    std::weak_ptr<KernelLane> weak() { return hold(); }

    // kernel_lane_requests.cpp
    bool is_current(std::uint64_t number) const;
    bool is_tracked_running() const;
    void send_current();
    void arm_deadlines(std::chrono::steady_clock::time_point now, std::chrono::microseconds cpu);
    std::chrono::microseconds cpu_of(const sandbox::Usage& session) const;
    void check_wall(std::chrono::steady_clock::time_point now);
    void check_cpu(std::chrono::microseconds now);
    void cut_short(Cut cut);
    void check_grace();
    Status take_step(RunningRequest::CutStep step);
    void on_reply(const protocol::Message& reply);
    void on_input_request(const protocol::Message& request);
    void finish_current();
    void prove_end(ClaimedEnd::Step step);
    void abort_followers(const protocol::Message& failed);
    ExecutionMetrics measure(const RunningRequest& request) const;

    // kernel_lane_files.cpp
    void place_files();
    void on_files_placed(std::uint64_t number);
    void finish_unsent();
    void complete_with_artifacts(
        const std::shared_ptr<TrackedExecution>& tracked, ExecutionResult result);

    // kernel_lane_limits.cpp
    void count_output(std::uint64_t bytes);
    void settle_limits(const std::optional<Death>& death);

    // kernel_lane_control.cpp
    ControlResponder::Kernel control_hooks();
    DebugRouter::Kernel debug_hooks();
    void repeat_busy();
    void answer_waiting_for_info();
    void answer_replay(const protocol::Message& request, ReplySink& origin) const;

    // kernel_lane_process.cpp
    void change(KernelEvent event);
    std::string prepare_working_directory() const;
    void on_ready(const protocol::Message& kernel_info);
    void on_kernel_message(protocol::Message message);
    void on_iopub(protocol::Message message);
    void on_kernel_text(OutputStream stream, std::string_view text);
    void on_link_closed(const Error& error);
    void publish(protocol::Message message);

    // kernel_lane_death.cpp
    void kill_kernel(Death why);
    void stay_dead(const Status& status, const protocol::Message* parent, const Death& death);
    void await_end();
    void tell_end();
    void give_up_on_end();
    void lose_kernel(const Death& death);
    void fail_current(const Death& death, const std::string& text);
    void fail_waiting(const Death& death, const std::string& text);
    void fail_request(PendingRequest& request, const Death& death, const std::string& text);
    void restart_kernel(const protocol::Message* parent, const Death& death);
    void fail_launch(const Status& launched, const protocol::Message* parent);
    bool may_restart(const Death& death);
    void settle_ready(const Status& status);
    std::string describe_end(const Death& death, Aftermath aftermath) const;

    LaneHost& host_;
    SessionCommons& shared_;
    const KernelSpec spec_;
    const sandbox::WorkerGroup group_;
    ServerMessages messages_;

    KernelState state_ = KernelState::kStarting;
    std::unique_ptr<KernelProcess> process_;
    ProcessEnd end_;              // of the present process
    std::optional<Death> death_;  // of the last process, while there is none
    std::string ready_probe_id_;  // msg_id of our first kernel_info_request
    std::optional<nlohmann::json> kernel_info_;
    std::shared_ptr<Completion<Status>> ready_;           // of the present process
    std::shared_ptr<Completion<Status>> restart_waiter_;  // of whoever asked for a restart
    std::string adopt_request_id_;                        // msg_id of our adopt request
    std::shared_ptr<Completion<Status>> adopted_;         // while it is with the kernel
    boost::asio::steady_timer start_timer_;
    RestartPolicy restart_policy_;

    LimitMonitor monitor_;
    bool counts_own_cpu_ = false;

    RequestQueue queue_;
    DebugRouter debugger_;
    std::optional<RunningRequest> current_;  // the request that is with the kernel
    std::string last_parent_header_ = "{}";  // of the run begun last: whose output a pipe's text is
    ControlResponder control_;
    boost::asio::steady_timer wall_timer_;
    boost::asio::steady_timer cpu_timer_;
    boost::asio::steady_timer uncork_timer_;
    boost::asio::steady_timer kill_timer_;
    ClaimedEnd claimed_end_;    // of the last run
    std::string end_probe_id_;  // msg_id of the question whether it has ended
    std::uint64_t next_number_ = 1;
    bool draining_ = false;           // taking the last words of a process that has ended
    bool ignore_congestion_ = false;  // while a deadline or an interrupt must get through

    std::shared_ptr<ArtifactCollector> artifacts_;  // of the workspace
};

}  // namespace cellkeep::session
