// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/run_approvals.hpp"

#include "kernel-manager/mcp/asking/approval_question.hpp"
#include "kernel-manager/mcp/limits.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

using PendingApproval = governance::Approvals::Pending;

constexpr std::string_view kElicit = "elicitation/create";

/// What comes back with the answer: sealed, so all of it is ours.
nlohmann::json memory_of(
    const PendingApproval& pending,
    std::size_t asked,
    const session::Execution& execution,
    const RunPlace& place) {
    return {
        {"approval", pending.id},
        {"asked", asked},
        {"execution", execution.id()},
        {"session", place.session_id},
        {"name", place.name},
        {"before", to_string(place.before)},
        {"note", place.note},
        {"created", place.created}};
}

State state_named(std::string_view name) {
    for (const State state : {State::kKept, State::kRestored}) {
        if (name == to_string(state)) {
            return state;
        }
    }
    return State::kLost;
}

}  // namespace

RunApprovals::RunApprovals(const ToolBench& bench, std::shared_ptr<Call> call)
    : bench_(bench), call_(std::move(call)) {
    if (earlier()) {
        asked_ = call_->input.memory.at("asked").get<std::size_t>();
    }
}

std::optional<RunApprovals::Earlier> RunApprovals::earlier() const {
    const nlohmann::json& memory = call_->input.memory;
    if (!memory.is_object() || !memory.contains("execution")) {
        return std::nullopt;
    }
    const auto text = [&](const char* name) { return memory.at(name).get<std::string>(); };
    return Earlier{
        text("execution"),
        RunPlace{
            text("name"),
            text("session"),
            state_named(text("before")),
            text("note"),
            memory.at("created").get<bool>()}};
}

std::optional<RpcError> RunApprovals::take_answer() {
    const nlohmann::json responses =
        std::exchange(call_->input.responses, nlohmann::json::object());
    const auto answer = responses.find(kApprovalKey);
    if (!earlier() || answer == responses.end()) {
        return std::nullopt;
    }
    const InputRequest asked{kApprovalKey, std::string(kElicit)};
    if (std::string wrong = find_wrong_answer(asked, *answer); !wrong.empty()) {
        return RpcError{RpcCode::kInvalidParams, std::move(wrong), {}, {}};
    }
    settle(call_->input.memory.at("approval").get<std::string>(), *answer);
    return std::nullopt;
}

/// As POST /v1/approvals/{id} would. What no longer waits is left as it is.
void RunApprovals::settle(const std::string& id, const nlohmann::json& answer) {
    passed_.insert(id);
    const auto decided = read_approval_answer(answer);
    if (decided && bench_.approvals && http::may_approve(call_->principal())) {
        // Ignored: it has been answered elsewhere, or nobody waits for it any more.
        (void)bench_.approvals->settle(id, *decided, call_->principal().name).has_value();
    }
}

bool RunApprovals::asks() const {
    const bool can_ask = call_->peer().era == Era::kStateless ||
                         (call_->client() != nullptr && call_->has_listener());
    return can_ask && bench_.approvals && http::may_approve(call_->principal()) &&
           call_->peer().capabilities.answers(kElicit) && asked_ < kCallApprovalsMax;
}

const PendingApproval* RunApprovals::next(const session::Execution& execution) const {
    const auto* waiting = call_for_approval(execution);
    if (waiting == nullptr || !asks() || passed_.contains(waiting->approval)) {
        return nullptr;
    }
    return bench_.approvals->find(waiting->approval);
}

asio::awaitable<void> RunApprovals::ask(
    std::shared_ptr<session::Execution> execution, std::string session) {
    const PendingApproval* pending = next(*execution);
    const std::string id = pending->id;
    InputRequest question = approval_question(*pending, session, bench_.other_approvers);
    passed_.insert(id);
    ++asked_;
    WatchQuestion watch = [execution, id](std::function<void()> take_back) {
        return execution->subscribe(
            [id, weak = std::weak_ptr(execution), take_back = std::move(take_back)] {
                const auto alive = weak.lock();
                const auto* waiting = alive ? call_for_approval(*alive) : nullptr;
                if (waiting == nullptr || waiting->approval != id) {
                    take_back();
                }
            });
    };
    const InputRequest asked{kApprovalKey, std::string(kElicit)};
    const auto answer = co_await put_question(call_, std::move(question), std::move(watch));
    if (answer.has_value() && find_wrong_answer(asked, answer.value()).empty()) {
        settle(id, answer.value());
    }
}

asio::awaitable<Answerer::Answer> RunApprovals::ask_by_result(
    std::shared_ptr<session::Execution> execution, RunPlace place) {
    const PendingApproval* pending = next(*execution);
    std::vector<InputRequest> questions = {
        approval_question(*pending, place.name, bench_.other_approvers)};
    nlohmann::json memory = memory_of(*pending, asked_ + 1, *execution, place);
    Asked asked = co_await ask_client(call_, std::move(questions), std::move(memory), bench_.seal);
    CELLKEEP_CHECK(asked.instead.has_value());  // no answer is there any more
    co_return std::move(*asked.instead);
}

}  // namespace cellkeep::mcp
