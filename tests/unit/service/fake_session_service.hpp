// SPDX-License-Identifier: Apache-2.0
//
// Sessions without sandboxes: they record their requests and answer as the test sets.
// Their workspace is a temporary directory.
#pragma once

#include "kernel-manager/service/session_service.hpp"
#include "protocol/support/completion.hpp"
#include "tests/unit/process/fake_commands.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session::test {

class FakeSession : public Session {
 public:
    FakeSession(SessionInfo info, int workspace_fd, boost::asio::io_context& io);

    const std::string& id() const override { return info_.id; }
    SessionInfo info() const override { return info_; }
    void submit(protocol::Message, std::shared_ptr<ReplySink>) override {}
    void subscribe(OutputObserver*) override {}
    void unsubscribe(OutputObserver*) override {}
    void resume_output() override {}
    const OutputJournal& journal() const override { return journal_; }
    void set_connection_file(std::string path) override { info_.connection_file = std::move(path); }
    Result<std::shared_ptr<Execution>> begin(ExecutionRequest request) override;
    std::shared_ptr<Execution> find_execution(const std::string& id) const override;
    std::vector<std::shared_ptr<Execution>> list_executions() const override { return executions; }
    Status interrupt_execution(const std::string& id) override;
    Status interrupt() override;
    boost::asio::awaitable<Status> restart() override;
    Status interrupt_language(const std::string& language) override;
    boost::asio::awaitable<Status> restart_language(const std::string& language) override;
    Status update(const SessionUpdate& wanted) override;
    bool has_checkpoint(const std::string& id) const override {
        return std::any_of(
            kept.checkpoints.begin(), kept.checkpoints.end(), [&id](const auto& one) {
                return one.id == id;
            });
    }
    boost::asio::awaitable<checkpoint::CheckpointList> list_checkpoints() override {
        co_return kept;
    }
    boost::asio::awaitable<Result<checkpoint::FileChanges>> compare_files(
        checkpoint::ComparisonOrder order) override;
    boost::asio::awaitable<Result<checkpoint::SessionFiles>> look_at_files() override;
    boost::asio::awaitable<Result<checkpoint::MergeAnswer>> merge_files(
        checkpoint::SessionFiles theirs, checkpoint::MergeOrder order) override;
    process::CommandTable* commands() override { return &fake_commands.table; }
    Result<sandbox::Workspace> workspace() override;
    boost::asio::awaitable<Result<UniqueFd>> connect_port(std::uint16_t port) override;
    Result<TreeWatch> watch_files(const std::string& path, TreeWatch::Depth depth) override;
    const Inputs& inputs() const override { return mounted; }
    Result<sandbox::Workspace::OpenedFile> open_input(const std::string& path) const override;
    void touch() override { ++touched; }
    void wake() override { ++woken; }
    std::shared_ptr<void> hold_awake() override {
        auto held = std::make_shared<int>(0);
        held_awake = held;
        return held;
    }
    KernelState state() const override { return info_.state; }
    std::shared_ptr<void> connect_client() override { return nullptr; }
    void close(Death) override { closed = true; }

    /// The value that info() returns.
    SessionInfo& edit() { return info_; }

    /// The answer of an execution unless the test sets another.
    ExecutionResult answer_of(const Execution& execution) const;

    std::deque<UniqueFd> servers_inside;  // what connect_port() gives, in turn; then kNotFound
    std::vector<std::uint16_t> connected_ports;
    int woken = 0;
    std::weak_ptr<void> held_awake;
    /// Made when it is first asked for: it holds instances of inotify, and its user has 128 of
    /// them.
    const std::shared_ptr<WatchRation>& watch_ration();
    std::vector<ExecutionRequest> requests;
    std::vector<std::shared_ptr<Execution>> executions;
    OperatorAccess operator_access;  // of the executions that begin
    bool finishes = true;            // an execution ends as soon as it begins
    ExecutionStatus outcome = ExecutionStatus::kOk;
    std::chrono::microseconds wall{0};  // what an execution takes, as its answer has it
    bool repeats = false;  // what begins is the last one again, as with a key that came before
    std::vector<SessionUpdate> updates;
    std::optional<Error> failure;                    // what every operation answers
    checkpoint::CheckpointList kept;                 // what list_checkpoints() answers
    std::optional<checkpoint::FileChanges> changes;  // nullopt: it has no such checkpoint
    std::vector<checkpoint::ComparisonOrder> compared;
    std::optional<checkpoint::SessionFiles> files;  // nullopt: it keeps none
    checkpoint::MergeAnswer merged;                 // what merge_files() answers
    std::vector<checkpoint::MergeOrder> merges;
    Inputs mounted;                  // path in the workspace: absolute path of the file
    std::vector<std::string> named;  // languages that were interrupted or restarted by name
    int interrupts = 0;
    int restarts = 0;
    int touched = 0;
    bool closed = false;

 private:
    SessionInfo info_;
    std::shared_ptr<WatchRation> watch_ration_;
    OutputJournal journal_{16, 1024};
    int workspace_fd_;
    boost::asio::io_context& io_;

 public:
    process::test::FakeCommands fake_commands{io_};
};

class FakeSessionService : public SessionService {
 public:
    FakeSessionService();
    ~FakeSessionService() override;

    boost::asio::awaitable<Result<std::shared_ptr<Session>>> create(
        SessionOptions options) override;
    boost::asio::awaitable<Result<std::shared_ptr<Session>>> branch(BranchOrder order) override;
    std::shared_ptr<Session> find(const std::string& id) const override;
    std::vector<std::shared_ptr<Session>> list() const override;
    Status remove(const std::string& id) override;
    std::vector<std::string> languages() const override { return {"python", "sql"}; }
    std::vector<NotOffered> not_offered() const override { return absent; }
    const KernelSpec* find_spec(const std::string& language) const override;
    LimitCeilings ceilings() const override { return {}; }
    bool ready() const override { return warm; }
    bool preparing() const override { return unprepared; }

    bool warm = true;
    bool unprepared = false;
    std::vector<NotOffered> absent;  // what not_offered() answers

    std::shared_ptr<FakeSession> add(SessionOptions options = {});
    const std::string& directory() const { return directory_; }

    boost::asio::io_context io;  // of what its executions wait for
    std::vector<std::shared_ptr<FakeSession>> sessions;
    std::vector<SessionOptions> asked;       // of create()
    std::vector<BranchOrder> branched;       // of branch()
    std::optional<Error> failure;            // what create() and branch() answer
    std::shared_ptr<Completion<bool>> gate;  // what create() and branch() wait for
    std::optional<Error> session_failure;    // what sessions made from now on answer
    std::function<void(const std::shared_ptr<FakeSession>&)> on_made;  // sets one up
    bool ends_what_runs = false;  // remove() interrupts the session's executions
    int removed = 0;

 private:
    std::vector<KernelSpec> specs_;
    std::string directory_;
    int directory_fd_ = -1;
    int next_id_ = 1;
};

}  // namespace cellkeep::session::test
