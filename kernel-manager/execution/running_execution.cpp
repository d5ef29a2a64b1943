// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/running_execution.hpp"

#include "protocol/json.hpp"
#include "protocol/json_text.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/time.hpp"
#include "protocol/tool_request.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

const protocol::RawJson& share_string(
    std::optional<protocol::RawJson>& made, const std::string& text) {
    if (!made) {
        std::string quoted;
        protocol::append_json_string(quoted, text);
        made.emplace(std::move(quoted));
    }
    return *made;
}

}  // namespace

std::string_view to_string(ExecutionPhase phase) {
    switch (phase) {
        case ExecutionPhase::kQueued:
            return "queued";
        case ExecutionPhase::kRunning:
            return "running";
        case ExecutionPhase::kFinished:
            return "finished";
    }
    return "unknown";
}

Execution::Execution(boost::asio::io_context& io, Order order)
    : order_(std::move(order)),
      created_at_(std::chrono::system_clock::now()),
      tools_(std::move(order_.tools), std::move(order_.operator_access), tool_watch()),
      io_(io) {}

boost::asio::awaitable<FinishedExecution> Execution::wait() {
    while (!result_ && !passed_) {
        const auto end = std::make_shared<Wakeup>(io_);
        waiting_.push_back(end);
        co_await end->wait();
    }
    co_return result_;
}

std::shared_ptr<void> Execution::subscribe(std::function<void()> on_news) {
    auto listener = std::make_shared<std::function<void()>>(std::move(on_news));
    std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
    listeners_.push_back(listener);
    return listener;
}

std::size_t Execution::listeners() const {
    return static_cast<std::size_t>(std::count_if(
        listeners_.begin(), listeners_.end(), [](const auto& one) { return !one.expired(); }));
}

void Execution::notify() {
    for (const auto& one : std::vector(listeners_)) {
        if (const auto listener = one.lock(); listener && *listener) {
            (*listener)();
        }
    }
}

const protocol::RawJson& Execution::stdout_json() const {
    return share_string(stdout_json_, result_->stdout_text);
}

const protocol::RawJson& Execution::stderr_json() const {
    return share_string(stderr_json_, result_->stderr_text);
}

void Execution::add_event(std::string type, protocol::TextPieces data) {
    events_.append(std::move(type), std::move(data));
    notify();
}

void Execution::ask_tool(const protocol::Message& request, ToolCalls::Reply reply) {
    if (request.header().msg_type == protocol::kToolListRequest) {
        reply(tools_.list());
        return;
    }
    const auto call = tools_.begin(request, std::move(reply));
    if (!call) {
        return;
    }
    protocol::TextSplicer text;
    text.add(R"({"call":")").add(call->id).add(R"(","tool":")").add(call->tool);
    text.add(R"(","arguments":)").add(call->arguments).add("}");
    // The caller answers a "tool_call", and must not answer the other one.
    add_event(call->is_operators ? "server_tool_call" : "tool_call", text.finish());
}

ToolCalls::Watch Execution::tool_watch() {
    return {
        .on_held =
            [this](const ToolCalls::Call& call) {
                add_event(
                    "approval",
                    protocol::TextPieces(protocol::dump_json(
                        {{"call", call.id},
                         {"approval",
                          call.approval.empty() ? nlohmann::json()
                                                : nlohmann::json(call.approval)}})));
            },
        .on_done =
            [this](const ToolCalls::Call& call, const ToolOutcome& outcome) {
                add_result_event("server_tool_result", call.id, outcome);
            }};
}

void Execution::add_result_event(
    std::string_view type, const std::string& call, const ToolOutcome& got) {
    nlohmann::json data = {
        {"call", call},
        {"status", got.failed ? "error" : "ok"},
        {"bytes", got.content.size()},
        {"sha256", protocol::sha256_hex(got.content)}};
    if (got.file) {
        data["file"] = got.file->path;
    }
    add_event(std::string(type), protocol::TextPieces(protocol::dump_json(data)));
}

Status Execution::answer_tool_call(const std::string& id, const ToolAnswer& answer) {
    BOOST_OUTCOME_TRY(std::string content, tools_.answer(id, answer));
    add_result_event("tool_result", id, {std::move(content), answer.error.has_value()});
    return ok();
}

void Execution::mark_queued() {
    add_event(
        "queued",
        protocol::TextPieces(protocol::dump_json(
            {{"id", order_.id},
             {"session_id", order_.session_id},
             {"created_at", to_iso8601(created_at_)}})));
}

void Execution::mark_started() {
    phase_ = ExecutionPhase::kRunning;
    started_at_ = std::chrono::system_clock::now();
    add_event(
        "started",
        protocol::TextPieces(protocol::dump_json(
            {{"id", order_.id},
             {"session_id", order_.session_id},
             {"started_at", to_iso8601(*started_at_)}})));
}

void Execution::pass_on() {
    passed_ = true;
    wake_waiting();
}

void Execution::go_on(Passed passed) {
    if (passed.started_at) {
        phase_ = ExecutionPhase::kRunning;
    }
    created_at_ = passed.created_at;
    started_at_ = passed.started_at;
    finished_at_ = passed.finished_at;
    events_.go_on(std::move(passed.events));
    if (passed.result) {
        phase_ = ExecutionPhase::kFinished;
        result_ = std::make_shared<const ExecutionResult>(std::move(*passed.result));
        end_tool_calls();
        wake_waiting();
    }
}

void Execution::finish(ExecutionResult result) {
    if (result_) {
        return;  // the first answer counts
    }
    end_tool_calls();
    phase_ = ExecutionPhase::kFinished;
    finished_at_ = std::chrono::system_clock::now();
    result_ = std::make_shared<const ExecutionResult>(std::move(result));
    events_.append("finished", protocol::TextPieces("{}"));
    notify();
    wake_waiting();
}

void Execution::wake_waiting() {
    for (const auto& end : std::exchange(waiting_, {})) {
        end->wake();
    }
}

}  // namespace cellkeep::session
