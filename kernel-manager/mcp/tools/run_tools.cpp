// SPDX-License-Identifier: Apache-2.0
//
// run_code, read_output and interrupt.
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/arguments.hpp"
#include "kernel-manager/mcp/tools/run_answer.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/steady_timer.hpp>

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
constexpr const char* kReplacedNote =
    "The interpreter was replaced since the last call. Variables of before are gone; files are "
    "kept.";
constexpr const char* kDefaultSession = "default";

std::string session_argument(const nlohmann::json& arguments) {
    return text_argument(arguments, "session", kDefaultSession);
}

std::string language_of_run(const session::Session& session, const std::string& asked) {
    return asked.empty() ? session.info().language : asked;
}

/// Returns when the execution has ended, the deadline has passed or the call is cancelled; tells of
/// progress meanwhile.
asio::awaitable<void> wait_for_run(
    std::shared_ptr<Call> call, ExecutionPointer execution, std::chrono::milliseconds patience) {
    const auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor);
    const auto news = execution->subscribe([timer, weak = std::weak_ptr(execution)] {
        if (const auto alive = weak.lock(); alive && alive->result()) {
            timer->cancel();
        }
    });
    call->on_cancel([timer] { timer->cancel(); });
    const auto begun = Clock::now();
    const auto deadline = begun + patience;
    auto next_report = begun + kProgressInterval;
    std::uint64_t seen = 0;
    while (!execution->result() && !call->cancelled() && Clock::now() < deadline) {
        timer->expires_at(call->wants_progress() ? std::min(deadline, next_report) : deadline);
        (void)co_await timer->async_wait(kAwait);
        const auto now = Clock::now();
        if (!execution->result() && call->wants_progress() && now >= next_report) {
            const NewOutput output = read_new_output(execution->events(), seen);
            seen = output.cursor;
            const auto seconds =
                std::chrono::duration_cast<std::chrono::seconds>(now - begun).count();
            const std::string line = last_line(output);
            call->report_progress(
                static_cast<double>(seconds),
                "running for " + std::to_string(seconds) + " s" +
                    (line.empty() ? "" : ": " + line));
            next_report = now + kProgressInterval;
        }
    }
    call->on_cancel({});
}

/// Waits, and answers whatever has come of it.
ToolCoroutine answer_run(
    ToolBench& bench,
    std::shared_ptr<Call> call,
    SessionPointer session,
    ExecutionPointer execution,
    RunPlace place,
    std::uint64_t cursor,
    std::chrono::milliseconds patience) {
    co_await wait_for_run(call, execution, patience);
    if (call->cancelled() && !execution->result()) {
        // Ignored: it may just have ended.
        (void)session->interrupt_execution(execution->id());
        co_return refuse(Refusal{"cancelled", "The call was cancelled.", "", State::kKept});
    }
    if (!execution->result()) {
        co_return running_answer(place, *execution, cursor);
    }
    // A death that this answer tells is not told again by the next.
    const std::string& named = execution->order().language;
    const std::string language = named.empty() ? session->info().language : named;
    const State after = bench.names.look(*session, language);
    if (!execution->result()->state_kept) {
        if (after == State::kKept) {
            bench.names.expect_restart(*session, language);
        }
    } else if (after == State::kLost && place.before == State::kKept) {
        place.before = State::kLost;
        place.note = kReplacedNote;
    }
    ToolAnswer answer = finished_answer(place, *execution);
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

std::chrono::milliseconds wait_argument(const nlohmann::json& arguments) {
    return std::chrono::milliseconds(number_argument(arguments, "wait_ms", kWaitDefault.count()));
}

}  // namespace

ToolCoroutine run_code(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const std::string name = session_argument(arguments);
    const std::string asked_language = text_argument(arguments, "language");
    const auto opened = co_await bench.names.open(call->principal(), name, asked_language);
    if (opened.has_error()) {
        co_return refuse(opened.error());
    }
    const SessionPointer session = opened.value().session;
    RunPlace place{name, session->id(), State::kKept, "", opened.value().created};
    const std::string language = language_of_run(*session, asked_language);
    if (bench.names.look(*session, language) == State::kLost) {
        place.before = State::kLost;
        place.note = kReplacedNote;
    }
    if (opened.value().replaced) {
        place.before = State::kLost;
        place.note = kEndedNote;
    }
    session::ExecutionRequest request;
    request.code = text_argument(arguments, "code");
    request.stdin_text = text_argument(arguments, "stdin");
    request.language = asked_language;
    if (arguments.contains("timeout_ms")) {
        request.timeout = std::chrono::milliseconds(number_argument(arguments, "timeout_ms", 1));
    }
    const auto begun = session->begin(std::move(request));
    if (begun.has_error()) {
        co_return refuse_run(begun.error(), *session);
    }
    co_return co_await answer_run(
        bench,
        std::move(call),
        session,
        begun.value(),
        std::move(place),
        0,
        wait_argument(arguments));
}

ToolCoroutine read_output(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const std::string name = session_argument(arguments);
    const auto found = bench.names.find(call->principal(), name);
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    const SessionPointer& session = found.value();
    const std::string id = text_argument(arguments, "execution_id");
    const ExecutionPointer execution = session->find_execution(id);
    if (execution == nullptr) {
        co_return refuse(Refusal{
            "unknown_execution",
            "The session has no execution " + show_text(id).text + ", or no longer remembers it.",
            "list_sessions names the runs of each session.",
            State::kKept});
    }
    const auto cursor = static_cast<std::uint64_t>(number_argument(arguments, "cursor", 0));
    // A variable: g++ 12 destroys such a temporary of a co_await twice.
    RunPlace place{name, session->id(), State::kKept, "", false};
    co_return co_await answer_run(
        bench,
        std::move(call),
        session,
        execution,
        std::move(place),
        cursor,
        wait_argument(arguments));
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
