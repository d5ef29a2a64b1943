// SPDX-License-Identifier: Apache-2.0
//
// run_code, read_output and interrupt.
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tasks/tasks.hpp"
#include "kernel-manager/mcp/tools/arguments.hpp"
#include "kernel-manager/mcp/tools/run_answer.hpp"
#include "kernel-manager/mcp/tools/run_approvals.hpp"
#include "kernel-manager/mcp/tools/run_end.hpp"
#include "kernel-manager/mcp/tools/run_progress.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

using Clock = std::chrono::steady_clock;
using SessionPointer = SessionNames::Session;
using ExecutionPointer = std::shared_ptr<session::Execution>;

constexpr const char* kEndedNote =
    "The session of this name had ended, with its variables and files. This is a new one.";
constexpr const char* kDefaultSession = "default";

std::string session_argument(const nlohmann::json& arguments) {
    return text_argument(arguments, "session", kDefaultSession);
}

std::string language_of_run(const session::Session& session, const std::string& asked) {
    return asked.empty() ? session.info().language : asked;
}

/// A run that a request waits for.
struct AwaitedRun {
    SessionPointer session;
    ExecutionPointer execution;
    RunPlace place;
    std::shared_ptr<RunApprovals> approvals;
    std::uint64_t cursor = 0;
    std::chrono::milliseconds patience{0};
    bool may_be_task = false;  // the client can take one in place of what there is when it is over
    bool only_read = false;    // the run does not end with this request
};

/// Returns when the execution has ended, the deadline has passed, the call is cancelled, or its
/// client is to be asked something.
asio::awaitable<void> wait_for_run(
    std::shared_ptr<Call> call, const AwaitedRun& run, Clock::time_point deadline) {
    const ExecutionPointer execution = run.execution;
    const auto approvals = run.approvals;
    const auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor);
    const auto news = execution->subscribe([timer, approvals, weak = std::weak_ptr(execution)] {
        const auto alive = weak.lock();
        if (alive && (alive->result() || approvals->next(*alive) != nullptr)) {
            timer->cancel();
        }
    });
    call->on_cancel([timer] { timer->cancel(); });
    while (!execution->result() && !call->cancelled() && approvals->next(*execution) == nullptr &&
           Clock::now() < deadline) {
        timer->expires_at(deadline);
        (void)co_await timer->async_wait(kAwait);
    }
    call->on_cancel({});
}

/// Waits, and asks the client what there is to ask; how long a person takes is not the run's time.
/// A result that asks is the answer of this request.
asio::awaitable<std::optional<Answerer::Answer>> follow_run(
    std::shared_ptr<Call> call, const AwaitedRun& run) {
    const auto executor = co_await asio::this_coro::executor;
    const auto progress = RunProgress::begin(executor, call, run.execution);
    auto deadline = Clock::now() + run.patience;
    while (true) {
        co_await wait_for_run(call, run, deadline);
        if (run.execution->result() || call->cancelled() ||
            run.approvals->next(*run.execution) == nullptr) {
            co_return std::nullopt;
        }
        if (call->peer().era == Era::kStateless) {
            co_return co_await run.approvals->ask_by_result(run.execution, run.place);
        }
        const auto asked_at = Clock::now();
        co_await run.approvals->ask(run.execution, run.place.name);
        deadline += Clock::now() - asked_at;
    }
}

ToolAnswer task_answer(const Task& task) {
    nlohmann::json created = to_json(task);
    created["resultType"] = "task";
    ToolAnswer answer;
    answer.instead = std::move(created);
    return answer;
}

/// Waits, and answers whatever has come of it.
ToolCoroutine answer_run(ToolBench& bench, std::shared_ptr<Call> call, AwaitedRun run) {
    const ExecutionPointer execution = run.execution;
    RunPlace& place = run.place;
    auto asks = co_await follow_run(call, run);
    if (asks) {
        ToolAnswer answer;
        answer.instead = std::move(*asks);
        co_return answer;
    }
    if (call->cancelled() && !execution->result()) {
        if (!run.only_read) {
            // Ignored: it may just have ended.
            (void)run.session->interrupt_execution(execution->id());
        }
        co_return refuse(Refusal{"cancelled", "The call was cancelled.", "", State::kKept});
    }
    if (!execution->result()) {
        const Task* task = run.may_be_task ? bench.tasks.add(
                                                 call->principal().name,
                                                 place,
                                                 execution->id(),
                                                 std::chrono::system_clock::now())
                                           : nullptr;
        co_return task != nullptr
            ? task_answer(*task)
            : running_answer(place, *execution, run.cursor, bench.other_approvers);
    }
    ToolAnswer answer = end_run(bench, *run.session, *execution, place);
    if (answer.structured.at("state") == to_string(State::kLost)) {
        call->log(
            LogLevel::kWarning,
            {{"message", "variables of before are gone"},
             {"session", place.name},
             {"execution_id", execution->id()}});
    }
    co_return answer;
}

ToolAnswer refuse_run(const Error& error, const session::Session& session) {
    if (error.code() == ErrorCode::kLimitExceeded) {
        if (const auto refusal = session.refusal()) {
            const bool is_budget = refusal->kind == session::LimitRefusal::Kind::kBudget;
            return refuse(Refusal{
                is_budget ? "budget_exhausted" : "circuit_open",
                refusal->message,
                refusal->hint,
                State::kKept});
        }
    }
    return refuse(error);
}

std::chrono::milliseconds wait_argument(
    const nlohmann::json& arguments, std::chrono::milliseconds usual) {
    return std::chrono::milliseconds(number_argument(arguments, "wait_ms", usual.count()));
}

ToolAnswer unknown_execution(const std::string& id) {
    return refuse(Refusal{
        "unknown_execution",
        "The session has no execution " + show_text(id).text + ", or no longer remembers it.",
        "list_sessions names the runs of each session.",
        State::kKept});
}

ToolAnswer answer_with(RpcError error) {
    ToolAnswer answer;
    answer.instead = std::move(error);
    return answer;
}

/// The run is there already: what came with the request was its answer, or its turn to read on.
ToolCoroutine answer_begun_run(
    ToolBench& bench, std::shared_ptr<Call> call, AwaitedRun run, std::string execution_id) {
    const bool by_id = !run.place.session_id.empty();
    const auto found =
        bench.names.find(call->principal(), by_id ? run.place.session_id : run.place.name);
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    run.session = found.value();
    run.place.session_id = run.session->id();
    run.execution = run.session->find_execution(execution_id);
    if (run.execution == nullptr) {
        co_return unknown_execution(execution_id);
    }
    co_return co_await answer_run(bench, std::move(call), std::move(run));
}

RunPlace place_of(
    ToolBench& bench,
    const SessionNames::Opened& opened,
    std::string name,
    const std::string& language) {
    const session::Session& session = *opened.session;
    RunPlace place{std::move(name), session.id(), State::kKept, "", opened.created};
    if (bench.names.look(session, language_of_run(session, language)) == State::kLost) {
        place.before = State::kLost;
        place.note = kReplacedNote;
    }
    if (opened.replaced) {
        place.before = State::kLost;
        place.note = kEndedNote;
    }
    return place;
}

/// limit: of the session, which another front end may have made.
session::ExecutionRequest request_of(
    const nlohmann::json& arguments, std::chrono::milliseconds limit) {
    session::ExecutionRequest request;
    request.code = text_argument(arguments, "code");
    request.stdin_text = text_argument(arguments, "stdin");
    request.language = text_argument(arguments, "language");
    request.timeout = std::chrono::milliseconds(
        number_argument(arguments, "timeout_ms", std::min(kRunTime, limit).count()));
    return request;
}

}  // namespace

ToolCoroutine run_code(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    AwaitedRun run;
    run.approvals = std::make_shared<RunApprovals>(bench, call);
    run.may_be_task = call->peer().era == Era::kStateless && call->peer().capabilities.tasks;
    run.patience = wait_argument(arguments, run.may_be_task ? kTaskAfter : kWaitDefault);
    if (auto wrong = run.approvals->take_answer()) {
        co_return answer_with(std::move(*wrong));
    }
    if (auto earlier = run.approvals->earlier()) {
        run.place = std::move(earlier->place);
        co_return co_await answer_begun_run(
            bench, std::move(call), std::move(run), std::move(earlier->execution_id));
    }
    std::string name = session_argument(arguments);
    const std::string language = text_argument(arguments, "language");
    NewSession wanted{language, flag_argument(arguments, "branches")};
    const auto opened = co_await bench.names.open(call->principal(), name, std::move(wanted));
    if (opened.has_error()) {
        co_return refuse_opening(opened.error());
    }
    run.session = opened.value().session;
    run.place = place_of(bench, opened.value(), std::move(name), language);
    const auto begun = run.session->begin(request_of(arguments, run.session->info().limits.wall));
    if (begun.has_error()) {
        co_return refuse_run(begun.error(), *run.session);
    }
    run.execution = begun.value();
    co_return co_await answer_run(bench, std::move(call), std::move(run));
}

ToolCoroutine read_output(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    AwaitedRun run;
    run.approvals = std::make_shared<RunApprovals>(bench, call);
    run.patience = wait_argument(arguments, kWaitDefault);
    run.only_read = true;
    run.cursor = static_cast<std::uint64_t>(number_argument(arguments, "cursor", 0));
    run.place.name = session_argument(arguments);
    if (auto wrong = run.approvals->take_answer()) {
        co_return answer_with(std::move(*wrong));
    }
    std::string id = text_argument(arguments, "execution_id");
    co_return co_await answer_begun_run(bench, std::move(call), std::move(run), std::move(id));
}

ToolCoroutine interrupt(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), session_argument(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    const SessionPointer& session = found.value();
    const std::string id = text_argument(arguments, "execution_id");
    const Status done = id.empty() ? session->interrupt() : session->interrupt_execution(id);
    if (done.has_error()) {
        co_return refuse(done.error());
    }
    ToolAnswer answer;
    answer.structured = {{"state", "kept"}, {"session_id", session->id()}};
    answer.add_text("interrupted\n[state kept]");
    co_return answer;
}

}  // namespace cellkeep::mcp
