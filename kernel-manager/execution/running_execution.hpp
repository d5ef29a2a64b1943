// SPDX-License-Identifier: Apache-2.0
//
// One accepted execution, from its place in the queue to its one terminal answer, for callers that
// wait for it or watch it. It ends whichever clients listen: a listener that goes away changes
// nothing. Driven by its session, which alone calls the owner's half. io_context thread only.
#pragma once

#include "kernel-manager/execution/event_journal.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/tool_calls.hpp"
#include "protocol/raw_json.hpp"
#include "protocol/support/wakeup.hpp"
#include "protocol/text_pieces.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

enum class ExecutionPhase { kQueued, kRunning, kFinished };

std::string_view to_string(ExecutionPhase phase);

/// A result that the waiting callers, the history and the idempotency keys share.
using FinishedExecution = std::shared_ptr<const ExecutionResult>;

class Execution {
 public:
    using Time = std::chrono::system_clock::time_point;

    /// What was asked, as far as it is kept.
    struct Order {
        std::string id;  // "exe_" and 24 hexadecimal digits
        std::string session_id;
        std::string language;
        std::string code_sha256;  // hexadecimal
        std::string reasoning;
        nlohmann::json metadata = nlohmann::json::object();
        std::vector<LentTool> tools = {};
        OperatorAccess operator_access = {};
        bool passes = false;  // ExecutionRequest::passes
    };

    Execution(boost::asio::io_context& io, Order order);
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;
    ~Execution() = default;

    const std::string& id() const { return order_.id; }
    const Order& order() const { return order_; }
    ExecutionPhase phase() const { return phase_; }
    Time created_at() const { return created_at_; }
    std::optional<Time> started_at() const { return started_at_; }
    std::optional<Time> finished_at() const { return finished_at_; }
    /// Null until it has finished.
    const FinishedExecution& result() const { return result_; }
    const EventJournal& events() const { return events_; }

    /// Stream text of a finished one as a JSON string, made when it is first asked for and then
    /// shared by all answers.
    const protocol::RawJson& stdout_json() const;
    const protocol::RawJson& stderr_json() const;

    /// The answer; null: another program in this process will have it. The caller shares ownership
    /// of the execution until this returns.
    boost::asio::awaitable<FinishedExecution> wait();

    /// Calls on_news after each new event, from inside what caused it: it may only take note. Until
    /// what it returns is let go.
    [[nodiscard]] std::shared_ptr<void> subscribe(std::function<void()> on_news);
    /// How many listen: those who wait or stream and said so by subscribing.
    std::size_t listeners() const;

    // --- the tools that its caller lends, and the operator's
    const std::optional<ToolCalls::Call>& waiting_tool_call() const { return tools_.waiting(); }
    /// As ToolCalls::held_for().
    std::chrono::nanoseconds held_for(std::chrono::steady_clock::time_point now) const {
        return tools_.held_for(now);
    }
    /// As ToolCalls::answer(), with an event.
    Status answer_tool_call(const std::string& id, const ToolAnswer& answer);

    // --- the owner's half
    /// Takes a request of protocol/tool_request.hpp. The reply is sent now or later, or never: the
    /// code has ended then.
    void ask_tool(const protocol::Message& request, ToolCalls::Reply reply);
    /// Its code has ended: an answer that comes now is refused.
    void end_tool_calls() { tools_.give_up(); }
    /// Something else runs first.
    void mark_queued();
    void mark_started();
    /// data: the text of one JSON object without line ends.
    void add_event(std::string type, protocol::TextPieces data);
    /// Once. The last event is "finished", whose data are the result.
    void finish(ExecutionResult result);
    void forget_events() { events_.forget(); }

    /// It can go on in another program in this process before it has finished.
    bool can_pass() const {
        return order_.passes && phase_ != ExecutionPhase::kFinished && tools_.are_unused();
    }
    /// Another program has it: it has no answer here, and who waits for one learns that.
    void pass_on();
    /// One of another program in this process. Before anyone listens.
    struct Passed {
        Time created_at;
        std::optional<Time> started_at;
        std::optional<Time> finished_at;
        std::vector<ExecutionEvent> events;     // the newest, with their numbers
        std::optional<ExecutionResult> result;  // nothing: it has not finished
    };
    void go_on(Passed passed);
    /// Where its callers are called.
    boost::asio::io_context& io() const { return io_; }

 private:
    void notify();
    void wake_waiting();
    ToolCalls::Watch tool_watch();
    void add_result_event(std::string_view type, const std::string& call, const ToolOutcome& got);

    Order order_;
    ExecutionPhase phase_ = ExecutionPhase::kQueued;
    Time created_at_;
    std::optional<Time> started_at_;
    std::optional<Time> finished_at_;
    EventJournal events_;
    ToolCalls tools_;
    FinishedExecution result_;
    bool passed_ = false;
    mutable std::optional<protocol::RawJson> stdout_json_;
    mutable std::optional<protocol::RawJson> stderr_json_;
    boost::asio::io_context& io_;
    std::vector<std::shared_ptr<Wakeup>> waiting_;  // in wait()
    std::vector<std::weak_ptr<std::function<void()>>> listeners_;
};

}  // namespace cellkeep::session
