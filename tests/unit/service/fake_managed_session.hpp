// SPDX-License-Identifier: Apache-2.0
//
// A session without a sandbox, as its owner sees it. It writes down the steps of its end, and its
// start waits for the test.
#pragma once

#include "kernel-manager/service/session_entry.hpp"
#include "kernel-manager/session/managed_session.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session::test {

using Steps = std::vector<std::string>;

class FakeManagedSession : public ManagedSession {
 public:
    FakeManagedSession(std::string id, Steps& steps, SessionOptions options = {})
        : steps_(steps), options_(std::move(options)) {
        info_.id = std::move(id);
    }

    const std::string& id() const override { return info_.id; }
    SessionInfo info() const override {
        SessionInfo info = info_;
        info.branch = branch;
        return info;
    }
    KernelState state() const override { return KernelState::kIdle; }
    void submit(protocol::Message, std::shared_ptr<ReplySink>) override {}
    void subscribe(OutputObserver*) override {}
    void unsubscribe(OutputObserver*) override {}
    void resume_output() override {}
    const OutputJournal& journal() const override { return journal_; }
    std::shared_ptr<void> connect_client() override { return nullptr; }
    void set_connection_file(std::string) override {}
    Result<std::shared_ptr<Execution>> begin(ExecutionRequest) override { return refuse(); }
    std::shared_ptr<Execution> find_execution(const std::string&) const override { return nullptr; }
    std::vector<std::shared_ptr<Execution>> list_executions() const override { return {}; }
    Status interrupt_execution(const std::string&) override { return refuse(); }
    Status interrupt() override { return refuse(); }
    boost::asio::awaitable<Status> restart() override { co_return refuse(); }
    Status interrupt_language(const std::string&) override { return refuse(); }
    boost::asio::awaitable<Status> restart_language(const std::string&) override {
        co_return refuse();
    }
    Status update(const SessionUpdate&) override { return refuse(); }
    Result<sandbox::Workspace> workspace() override { return refuse(); }
    void touch() override {}
    void close(Death) override {
        note("close");
        if (starting) {
            starting->set(false);
        }
    }

    const std::string& kernel_id() const override { return kernel; }
    const SessionOptions& options() const override { return options_; }
    std::shared_ptr<sandbox::Zygote> zygote() const override { return nullptr; }
    std::size_t passed_bytes(SharedParts& /*shared*/) const override { return bytes; }
    bool is_lost() const override { return lost; }
    boost::asio::awaitable<Status> start() override { return wait("start"); }
    boost::asio::awaitable<Status> adopt(std::string kernel_id, SessionOptions options) override {
        kernel = std::move(kernel_id);
        options_ = std::move(options);
        return wait("adopt");
    }
    void set_on_end_requested(std::function<void(Death)> callback) override {
        on_end = std::move(callback);
    }
    void end_conversation(const Death&) override { note("end"); }
    void kill_inside() override { note("kill"); }
    std::shared_ptr<sandbox::Sandbox> release_sandbox() override {
        note("release");
        return nullptr;
    }
    std::shared_ptr<FamilyMember> family() const override { return member; }
    std::shared_ptr<sandbox::Sandbox> set_sandbox_aside() override {
        note("aside");
        return rest;
    }
    Status remove_leftovers(std::chrono::milliseconds) override {
        note("remove");
        return leftovers ? Status(*leftovers) : Status(ok());
    }

    std::string kernel;
    std::size_t bytes = 0;                 // that pass
    bool lost = false;                     // its sandbox is gone
    std::shared_ptr<FamilyMember> member;  // null: alone
    std::optional<BranchInfo> branch;
    std::shared_ptr<sandbox::Sandbox> rest;  // what set_sandbox_aside() gives
    /// What start() and adopt() wait for; null: nothing.
    std::shared_ptr<Completion<bool>> starting;
    std::optional<Error> failure;    // of start() and adopt()
    std::optional<Error> leftovers;  // of remove_leftovers()
    std::function<void(Death)> on_end;

 private:
    static Error refuse() { return {ErrorCode::kConflict, "not in this test"}; }
    void note(const std::string& step) { steps_.push_back(info_.id + " " + step); }
    boost::asio::awaitable<Status> wait(std::string step) {
        note(step);
        if (starting) {
            const bool goes_on = co_await Completion<bool>::wait(starting);
            if (!goes_on) {
                co_return Error(ErrorCode::kConflict, "closed");
            }
        }
        if (failure) {
            co_return *failure;
        }
        co_return ok();
    }

    Steps& steps_;
    SessionInfo info_;
    SessionOptions options_;
    OutputJournal journal_{16, 1024};
};

/// Places as a test hands them out.
struct Places {
    Claim<std::uint32_t>::Taken slots = std::make_shared<std::set<std::uint32_t>>();
    Claim<std::string>::Taken kernel_ids = std::make_shared<std::set<std::string>>();

    SessionEntry entry(std::shared_ptr<ManagedSession> session, std::uint32_t slot) const {
        SessionEntry one;
        one.session = std::move(session);
        one.slot = std::move(*Claim<std::uint32_t>::take(slots, slot));
        one.kernel_id = std::move(*Claim<std::string>::take(kernel_ids, std::to_string(slot)));
        return one;
    }
};

inline boost::asio::awaitable<void> keep_status(
    boost::asio::awaitable<Status> wait, std::optional<Status>& done) {
    done.emplace(co_await std::move(wait));
}

/// Runs what is ready; done is set when the wait is over, and lives longer than it.
inline void begin_wait(
    boost::asio::io_context& io, boost::asio::awaitable<Status> wait, std::optional<Status>& done) {
    boost::asio::co_spawn(io, keep_status(std::move(wait), done), boost::asio::detached);
    io.restart();
    (void)io.poll();
}

}  // namespace cellkeep::session::test
