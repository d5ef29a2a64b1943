// SPDX-License-Identifier: Apache-2.0
//
// The executions that agents ask a session for: how one is accepted or is an earlier one again, how
// it comes into its kernel's queue, is found, is stopped, and ends. io_context thread only.
#pragma once

#include "kernel-manager/execution/execution_book.hpp"
#include "kernel-manager/kernel/request_queue.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_kernels.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "kernel-manager/session/session_tools.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

class SessionExecutions {
 public:
    /// Setup, kernels, account and tools stay where they are. on_accepted: an execution counts as
    /// activity.
    SessionExecutions(
        boost::asio::io_context& io,
        const SessionSetup& setup,
        SessionKernels& kernels,
        SessionAccount& account,
        SessionTools& tools,
        std::function<void()> on_accepted);
    SessionExecutions(const SessionExecutions&) = delete;
    SessionExecutions& operator=(const SessionExecutions&) = delete;
    ~SessionExecutions() = default;

    /// Session::begin(), of a session that lives.
    Result<std::shared_ptr<Execution>> begin(ExecutionRequest request);
    /// Session::begin_all().
    Result<std::vector<std::shared_ptr<Execution>>> begin_all(
        std::vector<ExecutionRequest> requests);
    std::shared_ptr<Execution> find(const std::string& id) const { return book_.find(id); }
    std::vector<std::shared_ptr<Execution>> list() const { return book_.list(); }
    /// The id of the newest that has begun.
    std::optional<std::string> find_newest() const;
    /// The ids of those of a language that have begun after one, in their order, at most
    /// kUndoneNamedMax; without one, all.
    std::vector<std::string> begun_since(
        const std::optional<std::string>& earlier, const std::string& language) const;
    /// Session::interrupt_execution().
    Status interrupt(const std::string& id);
    /// Why an agent's execution would be refused now.
    std::optional<LimitRefusal> refusal() const;
    /// Its code has ended, or it never ran: this is its answer.
    void complete(TrackedExecution& tracked, ExecutionResult result);
    /// Accepted until now.
    std::uint64_t count() const { return accepted_; }

    /// The operator's tools of an execution, and a recorder that has recorded nothing.
    OperatorAccess tools_of(const std::string& id) const { return tools_.access(id); }
    ExecutionRecorder make_recorder(const std::string& id, std::string stdin_text) const;

    /// All that is kept, when those that have not finished can pass: for another program in this
    /// process, and from one.
    std::vector<ExecutionBook::PassedKey> keys() const { return book_.keys(); }
    void go_on(
        std::uint64_t accepted,
        const std::vector<std::shared_ptr<Execution>>& passed,
        std::vector<ExecutionBook::PassedKey> keys) {
        accepted_ = accepted;
        book_.go_on(passed, std::move(keys));
    }

 private:
    Status check(const ExecutionRequest& request) const;
    Status check_places(const std::vector<InputFile>& files) const;
    /// Session::begin(), but that nothing runs before start().
    struct Accepted {
        std::shared_ptr<Execution> execution;
        bool before = false;  // by an earlier request with the same key
    };
    Result<Accepted> accept(ExecutionRequest request);
    Result<std::shared_ptr<Execution>> enqueue(ExecutionRequest request, std::string digest);
    /// What was accepted runs as soon as it can.
    void start(const Accepted& accepted);
    std::shared_ptr<TrackedExecution> make(ExecutionRequest& request, const std::string& id) const;

    boost::asio::io_context& io_;
    const SessionSetup& setup_;
    SessionKernels& kernels_;
    SessionAccount& account_;
    SessionTools& tools_;
    const std::function<void()> on_accepted_;
    std::uint64_t accepted_ = 0;
    ExecutionBook book_;
};

}  // namespace cellkeep::session
