// SPDX-License-Identifier: Apache-2.0
//
// The Session that Service makes: one sandbox, and the parts that share it. Owns the parts and
// connects them; each does its part and knows the others by their interfaces only:
//   SessionKernels     the kernels in it (supervised_kernel.hpp)
//   SessionExecutions  what agents ask of them
//   SessionCheckpoints copies of the interpreter that sleep, and of files
//   SessionBranches    sessions that go on from them, and the way in which its own interpreter came
//   CommandTable       commands that run beside the interpreters (process/command_table.hpp)
//   SandboxWatch       what its pid 1 reports
//   SessionPassage     its way to another program in the server's process
//   SessionLife        its age, activity and clients; culling
//   IdleFreezer        when it is frozen
//   SessionAccount     what it costs; OutputFanout: the journal that front ends see
// Sources: sandboxed_session.cpp (the interface), sandboxed_session_parts.cpp (how the parts are
// connected).
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/saved_texts.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "kernel-manager/limits/usage_report.hpp"
#include "kernel-manager/output/output_fanout.hpp"
#include "kernel-manager/output/output_observer.hpp"
#include "kernel-manager/process/command_table.hpp"
#include "kernel-manager/session/checkpoints/auto_checkpoints.hpp"
#include "kernel-manager/session/checkpoints/session_branches.hpp"
#include "kernel-manager/session/checkpoints/session_checkpoints.hpp"
#include "kernel-manager/session/idle_freezer.hpp"
#include "kernel-manager/session/kernel_starter.hpp"
#include "kernel-manager/session/managed_session.hpp"
#include "kernel-manager/session/network/port_connection.hpp"
#include "kernel-manager/session/passing/session_passage.hpp"
#include "kernel-manager/session/sandbox_watch.hpp"
#include "kernel-manager/session/session_executions.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_kernels.hpp"
#include "kernel-manager/session/session_life.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "kernel-manager/session/session_tools.hpp"
#include "kernel-manager/session/supervised_kernel.hpp"
#include "kernel-manager/session/usage_meter.hpp"
#include "protocol/support/alarm.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

class SandboxedSession final : public ManagedSession,
                               public std::enable_shared_from_this<SandboxedSession> {
 public:
    using Setup = SessionSetup;

    static std::shared_ptr<SandboxedSession> create(
        boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox);
    SandboxedSession(const SandboxedSession&) = delete;
    SandboxedSession& operator=(const SandboxedSession&) = delete;
    ~SandboxedSession() override;

    boost::asio::awaitable<Status> start() override;
    boost::asio::awaitable<Status> adopt(std::string kernel_id, SessionOptions options) override;
    void set_on_end_requested(std::function<void(Death)> callback) override {
        setup_.on_end_requested = std::move(callback);
    }
    const SessionOptions& options() const override { return setup_.options; }
    std::shared_ptr<sandbox::Zygote> zygote() const override { return sandbox_.zygote(); }
    Result<BranchSeed> seed_branch(const std::string& checkpoint, bool reseed) override {
        return closed_ ? Error(ErrorCode::kConflict, "branch: the session has ended")
                       : branches_.seed(checkpoint, reseed);
    }
    std::shared_ptr<FamilyMember> family() const override { return setup_.family; }
    std::optional<std::string> find_obstacle() const override { return passage_.find_obstacle(); }
    bool is_lost() const override { return watch_.is_sandbox_gone(); }
    std::optional<std::string> find_newer_part() const override {
        return passage_.find_newer_part();
    }
    std::optional<std::string> find_work(bool runs_pass) const override {
        return passage_.find_work(runs_pass);
    }
    Result<std::uint32_t> ask_for_death_signal(bool wanted) override {
        return passage_.ask_for_death_signal(wanted);
    }
    Status wait_for_death_signal(std::uint32_t asked, std::chrono::milliseconds patience) override {
        return passage_.wait_for_death_signal(asked, patience);
    }
    std::size_t passed_bytes(SharedParts& shared) const override {
        return passage_.passed_bytes(shared);
    }
    PassedSession pass_on(SharedParts& shared) override { return passage_.pass_on(shared); }
    Status go_on(PassedSession passed) override { return passage_.go_on(std::move(passed)); }
    void end_conversation(const Death& reason) override;
    void kill_inside() override { sandbox_.begin_destroy(); }
    std::shared_ptr<sandbox::Sandbox> release_sandbox() override {
        branches_.forget_sandbox();
        return std::make_shared<sandbox::Sandbox>(sandbox_.release());
    }
    std::shared_ptr<sandbox::Sandbox> set_sandbox_aside() override {
        return branches_.set_sandbox_aside();
    }
    Status remove_leftovers(std::chrono::milliseconds patience) override {
        return sandbox_.destroy(patience);
    }

    const std::string& id() const override { return setup_.id; }
    const std::string& kernel_id() const override { return setup_.kernel_id; }
    SessionInfo info() const override;
    std::string owner() const override { return setup_.options.owner; }
    OfferedLanguages offered_languages() const override { return kernels_.offered(); }
    KernelState state() const override { return kernels_.main().state(); }
    void submit(protocol::Message request, std::shared_ptr<ReplySink> origin) override;
    void subscribe(OutputObserver* observer) override { output_.subscribe(observer); }
    void unsubscribe(OutputObserver* observer) override;
    void resume_output() override;
    const OutputJournal& journal() const override { return output_.journal(); }
    std::shared_ptr<void> connect_client() override { return life_.connect_client(); }
    std::shared_ptr<void> connect_returning_client() override {
        return life_.connect_returning_client();
    }
    std::optional<protocol::Message> question() const override {
        return kernels_.main().question();
    }
    void set_connection_file(std::string path) override { connection_file_ = std::move(path); }
    Result<std::shared_ptr<Execution>> begin(ExecutionRequest request) override;
    Result<std::vector<std::shared_ptr<Execution>>> begin_all(
        std::vector<ExecutionRequest> requests) override;
    std::shared_ptr<Execution> find_execution(const std::string& id) const override {
        return executions_.find(id);
    }
    std::vector<std::shared_ptr<Execution>> list_executions() const override {
        return executions_.list();
    }
    Status interrupt_execution(const std::string& id) override { return executions_.interrupt(id); }
    Status interrupt() override { return kernels_.interrupt(); }
    boost::asio::awaitable<Status> restart() override;
    Status interrupt_language(const std::string& language) override;
    boost::asio::awaitable<Status> restart_language(const std::string& language) override;
    boost::asio::awaitable<Result<checkpoint::CheckpointMade>> make_checkpoint(
        checkpoint::CheckpointOrder order) override;
    boost::asio::awaitable<checkpoint::CheckpointList> list_checkpoints() override {
        return checkpoints_.list();
    }
    boost::asio::awaitable<Result<checkpoint::FileChanges>> compare_files(
        checkpoint::ComparisonOrder order) override;
    boost::asio::awaitable<Result<checkpoint::SessionFiles>> look_at_files() override;
    boost::asio::awaitable<Result<checkpoint::MergeAnswer>> merge_files(
        checkpoint::SessionFiles theirs, checkpoint::MergeOrder order) override;
    bool has_checkpoint(const std::string& id) const override { return checkpoints_.has(id); }
    Status remove_checkpoint(const std::string& id) override {
        touch();
        return checkpoints_.remove(id);
    }
    std::optional<checkpoint::Gone> find_gone_checkpoint(const std::string& id) const override {
        return checkpoints_.find_gone(id);
    }
    boost::asio::awaitable<Result<checkpoint::RolledBack>> roll_back(
        checkpoint::RollbackOrder order) override;
    process::CommandTable* commands() override { return &commands_; }
    Status update(const SessionUpdate& wanted) override;
    std::optional<LimitRefusal> refusal() const override { return executions_.refusal(); }
    Result<sandbox::Workspace> workspace() override;
    boost::asio::awaitable<Result<UniqueFd>> connect_port(std::uint16_t port) override {
        return ports_.connect(shared_from_this(), port);
    }
    std::shared_ptr<void> hold_awake() override { return ports_.hold_awake(); }
    Result<TreeWatch> watch_files(const std::string& path, TreeWatch::Depth depth) override {
        const Watcher whose{setup_.id, setup_.options.owner};
        return open_tree_watch(setup_.watch_ration, whose, workspace(), path, depth);
    }
    const Inputs& inputs() const override { return setup_.mounted; }
    Result<sandbox::Workspace::OpenedFile> open_input(const std::string& path) const override;
    Status freeze(std::function<void()> woken) override;
    void wake() override { freezer_.wake(); }
    Result<sandbox::Usage> usage() const override;
    void touch() override { life_.touch(); }
    void close(Death reason) override;

 private:
    SandboxedSession(boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox);

    const SessionLimits& session_limits() const { return setup_.options.limits; }
    boost::asio::awaitable<Status> place_files();
    Status apply_limits(const SessionLimits& wanted);
    nlohmann::json make_usage();
    void on_left_dead(const Death& death);
    boost::asio::awaitable<void> make_automatic();
    std::optional<RestoredState> find_revival() const;
    boost::asio::awaitable<void> revive(std::string checkpoint);
    boost::asio::awaitable<Status> launch();
    boost::asio::awaitable<void> settle();

    // sandboxed_session_parts.cpp
    KeepAlive keep_alive();
    std::unique_ptr<SupervisedKernel> make_kernel(KernelSpec spec, sandbox::WorkerGroup group);
    SupervisedKernel::Sandbox kernel_sandbox(sandbox::WorkerGroup group);
    SupervisedKernel::Owner kernel_owner(sandbox::WorkerGroup group);
    SupervisedKernel::Log kernel_log();
    UsageMeter::Source usage_counters();
    SessionKernels::Hooks kernels_hooks();
    SessionCheckpoints::Hooks checkpoint_hooks();
    process::CommandTable::Hooks command_hooks();
    AutoCheckpointer::Hooks auto_checkpoint_hooks();
    SandboxWatch::Listener watch_listener();
    SessionLife::Hooks life_hooks();
    bool can_freeze() const;
    std::chrono::seconds freeze_after() const;
    bool is_at_work() const;
    /// A checkpoint, a rollback, or what follows one is under way.
    bool is_settling() const {
        return checkpoints_.is_working() || checkpoints_.is_getting_ready() ||
               starter_.is_departing();
    }
    IdleFreezer::Hooks freezer_hooks();
    void note_visit() {
        touch();
        freezer_.wake();
        freezer_.note_use();
    }
    /// Nothing is left of the interpreter that a rollback has left.
    void on_departed() {
        if (!closed_) {
            kernels_.dispatch();
            on_settled();
        }
    }
    /// A checkpoint, a rollback, or what follows one has ended.
    void on_settled() {
        if (!closed_) {
            freezer_.settle();
            life_.review_if_kept();
        }
    }

    boost::asio::io_context& io_;
    SessionSetup setup_;
    sandbox::Sandbox sandbox_;
    const sandbox::Workspace workspace_;  // a view of sandbox_
    SessionAccount account_;
    SessionTools tools_;
    OutputFanout output_;  // what front ends see: the output of the main kernel
    SavedTexts saved_texts_;
    UsageMeter usage_;
    UsageReport usage_report_;
    std::size_t queued_bytes_ = 0;  // of the requests that wait, whatever their language
    bool closed_ = false;
    SessionLife life_;
    KernelStarter starter_;
    SessionKernels kernels_;
    SessionExecutions executions_;
    SessionCheckpoints checkpoints_;
    SessionBranches branches_;
    process::CommandTable commands_;
    AutoCheckpointer auto_checkpoints_;
    bool auto_refusal_logged_ = false;
    SandboxWatch watch_;
    IdleFreezer freezer_;
    PortConnector ports_;
    std::string connection_file_;
    SessionPassage passage_{SessionPassage::Parts{
        io_,
        setup_,
        sandbox_,
        account_,
        output_,
        saved_texts_,
        life_,
        starter_,
        kernels_,
        executions_,
        checkpoints_,
        branches_,
        commands_,
        auto_checkpoints_,
        watch_,
        freezer_,
        ports_,
        closed_}};
};

}  // namespace cellkeep::session
