// SPDX-License-Identifier: Apache-2.0
//
// The Session that Service makes: a sandbox, the kernels in it (supervised_kernel.hpp), an account
// over what it costs, a journal behind the one that front ends see. Sources: live_session.cpp (the
// interface), live_session_lanes.cpp (languages and their lanes), live_session_executions.cpp
// (executions of agents), live_session_files.cpp (files it begins with), live_session_events.cpp
// (what its sandbox tells), live_session_life.cpp (hand-out of a spare, culling, the end),
// live_session_update.cpp (what may change), live_session_rest.cpp (when it is frozen).
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution_book.hpp"
#include "kernel-manager/execution/saved_texts.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "kernel-manager/output/output_fanout.hpp"
#include "kernel-manager/output/output_observer.hpp"
#include "kernel-manager/session/activity.hpp"
#include "kernel-manager/session/connected_clients.hpp"
#include "kernel-manager/session/idle_freezer.hpp"
#include "kernel-manager/session/kernel_starter.hpp"
#include "kernel-manager/session/managed_session.hpp"
#include "kernel-manager/session/sandbox_inbox.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "kernel-manager/session/supervised_kernel.hpp"
#include "kernel-manager/session/usage_meter.hpp"
#include "kernel-manager/session/usage_report.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

class LiveSession final : public ManagedSession, public std::enable_shared_from_this<LiveSession> {
 public:
    using Setup = SessionSetup;

    static std::shared_ptr<LiveSession> create(
        boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox);
    LiveSession(const LiveSession&) = delete;
    LiveSession& operator=(const LiveSession&) = delete;
    ~LiveSession() override;

    boost::asio::awaitable<Status> start() override;
    boost::asio::awaitable<Status> adopt(std::string kernel_id, SessionOptions options) override;
    void set_on_end_requested(std::function<void(Death)> callback) override {
        setup_.on_end_requested = std::move(callback);
    }
    const SessionOptions& options() const override { return setup_.options; }
    std::shared_ptr<sandbox::Zygote> zygote() const override { return sandbox_.zygote(); }
    void end_conversation(const Death& reason) override;
    void kill_inside() override { sandbox_.begin_destroy(); }
    std::shared_ptr<sandbox::Sandbox> release_sandbox() override {
        return std::make_shared<sandbox::Sandbox>(sandbox_.release());
    }
    Status remove_leftovers(std::chrono::milliseconds patience) override {
        return sandbox_.destroy(patience);
    }

    const std::string& id() const override { return setup_.id; }
    const std::string& kernel_id() const override { return setup_.kernel_id; }
    SessionInfo info() const override;
    KernelState state() const override { return main_->state(); }
    void submit(protocol::Message request, std::shared_ptr<ReplySink> origin) override;
    void subscribe(OutputObserver* observer) override { output_.subscribe(observer); }
    void unsubscribe(OutputObserver* observer) override;
    void resume_output() override;
    const OutputJournal& journal() const override { return output_.journal(); }
    std::shared_ptr<void> connect_client() override { return clients_.add(); }
    std::optional<protocol::Message> question() const override { return main_->question(); }
    void set_connection_file(std::string path) override { connection_file_ = std::move(path); }
    Result<std::shared_ptr<Execution>> begin(ExecutionRequest request) override;
    std::shared_ptr<Execution> find_execution(const std::string& execution_id) const override;
    std::vector<std::shared_ptr<Execution>> list_executions() const override;
    Status interrupt_execution(const std::string& execution_id) override;
    Status interrupt() override;
    boost::asio::awaitable<Status> restart() override;
    Status interrupt_language(const std::string& language) override;
    boost::asio::awaitable<Status> restart_language(const std::string& language) override;
    Status update(const SessionUpdate& wanted) override;
    std::optional<Refusal> refusal() const override {
        return account_.refuse_agent(session_limits(), std::chrono::steady_clock::now());
    }
    Result<sandbox::Workspace> workspace() override;
    const Inputs& inputs() const override { return setup_.mounted; }
    Result<sandbox::Workspace::OpenedFile> open_input(const std::string& path) const override;
    void touch() override;
    void close(Death reason) override;

 private:
    LiveSession(boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox);

    const SessionLimits& session_limits() const { return setup_.options.limits; }

    // for its kernels
    void note_use();
    bool is_alone(const SupervisedKernel& lane) const;
    void review_life();
    void on_left_dead(const Death& death);
    void take_denials();
    Status begin_sweep(SupervisedKernel& lane);
    bool postpones_launch(SupervisedKernel& lane);
    void complete(TrackedExecution& tracked, ExecutionResult result);
    nlohmann::json make_usage();

    // live_session_lanes.cpp
    std::unique_ptr<SupervisedKernel> make_kernel(KernelSpec spec, sandbox::WorkerGroup group);
    SupervisedKernel::Sandbox kernel_sandbox(sandbox::WorkerGroup group);
    SupervisedKernel::Owner kernel_owner();
    SupervisedKernel::Log kernel_log();
    SupervisedKernel& kernel_of(sandbox::WorkerGroup group) const {
        return group == 0 ? *main_ : *further_[group - 1];
    }
    /// The lanes, the main one first. None ever goes before the session does.
    std::vector<SupervisedKernel*> lanes() const;
    SupervisedKernel* find_lane(const std::string& language) const;
    Result<SupervisedKernel*> lane_in_use(const std::string& language) const;
    Status check_language(const std::string& language) const;
    /// The language's lane, which is made if there is none; check_language() has looked.
    SupervisedKernel& open_lane(const std::string& language);
    void launch_lanes();
    std::vector<LanguageInfo> list_languages() const;

    // live_session_executions.cpp
    Status check_execution(const ExecutionRequest& request) const;
    Result<std::shared_ptr<Execution>> enqueue(ExecutionRequest request, std::string digest);

    // live_session_files.cpp
    Status write_files(std::vector<InputFile> files);
    Status check_places(const std::vector<InputFile>& files) const;

    // live_session_events.cpp
    void watch_sandbox();
    void take_sandbox_events();
    void tell_denial(const sandbox::Denial& denial);

    // live_session_life.cpp
    void watch_life();

    // live_session_rest.cpp
    std::chrono::seconds freeze_after() const;
    bool is_at_work() const;
    IdleFreezer::Hooks freezer_hooks();

    boost::asio::io_context& io_;
    SessionSetup setup_;
    sandbox::Sandbox sandbox_;
    const sandbox::Workspace workspace_;  // a view of sandbox_
    SessionAccount account_;
    OutputFanout output_;  // what front ends see: the output of the main kernel
    SavedTexts saved_texts_;
    UsageMeter usage_;
    std::size_t queued_bytes_ = 0;  // of the requests that wait, whatever their language
    bool closed_ = false;
    KernelStarter starter_;
    const std::unique_ptr<SupervisedKernel> main_;
    std::vector<std::unique_ptr<SupervisedKernel>> further_;
    std::vector<SupervisedKernel*> to_launch_;  // of further_: until nothing is in the way
    bool sweeping_all_ = false;                 // nothing can be started inside
    boost::asio::posix::stream_descriptor sandbox_events_;
    SandboxInbox inbox_;

    std::uint64_t executions_ = 0;
    ExecutionBook book_;

    std::chrono::system_clock::time_point created_at_;
    std::chrono::steady_clock::time_point created_steady_;
    Activity activity_;
    ConnectedClients clients_;
    boost::asio::steady_timer life_timer_;
    bool life_blocked_ = false;  // something keeps the session: its end wakes watch_life()
    IdleFreezer freezer_;
    std::string connection_file_;
    UsageReport usage_report_;
};

}  // namespace cellkeep::session
