// SPDX-License-Identifier: Apache-2.0
//
// list_sessions, close_session, restart, checkpoint and rollback.
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/arguments.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"
#include "protocol/support/time.hpp"

#include <utility>

namespace cellkeep::mcp {

namespace {

std::string named_session(const nlohmann::json& arguments) {
    return text_argument(arguments, "session", "default");
}

ToolAnswer done_answer(State state, nlohmann::json structured, const std::string& text) {
    ToolAnswer answer;
    answer.structured = std::move(structured);
    answer.structured["state"] = to_string(state);
    answer.add_text(text + "\n[state " + std::string(to_string(state)) + "]");
    return answer;
}

nlohmann::json session_json(
    const std::string& name,
    const session::Session& session,
    const checkpoint::CheckpointList& kept) {
    const session::SessionInfo info = session.info();
    nlohmann::json running = nlohmann::json::array();
    for (const auto& execution : session.list_executions()) {
        if (!execution->result()) {
            running.push_back(execution->id());
        }
    }
    nlohmann::json checkpoints = nlohmann::json::array();
    for (const checkpoint::Checkpoint& one : kept.checkpoints) {
        nlohmann::json shown = {{"id", one.id}};
        if (one.label) {
            shown["label"] = *one.label;
        }
        checkpoints.push_back(std::move(shown));
    }
    return {
        {"session", name},
        {"session_id", info.id},
        {"language", info.language},
        {"kernel", session::to_string(info.state)},
        {"running", std::move(running)},
        {"checkpoints", std::move(checkpoints)},
        {"last_activity", to_iso8601(info.last_activity)}};
}

nlohmann::json lost_json(const checkpoint::Lost& lost) {
    return {
        {"threads", lost.threads},
        {"processes", lost.children},
        {"sockets", lost.sockets},
        {"shared_mappings", lost.shared_mappings}};
}

ToolAnswer refuse_copy(const checkpoint::NotForkable& refused) {
    using Why = checkpoint::NotForkable::Why;
    std::string hint = "The session's limits of processes and memory hold for copies, too.";
    std::string message = "The system refused to copy the interpreter.";
    if (refused.why == Why::kLanguage) {
        message = "An interpreter of this language cannot be copied.";
        hint = "Save what you need to a file.";
    } else if (refused.why == Why::kThreads) {
        message = "The interpreter has " + std::to_string(refused.count) +
                  " other threads, which a copy would lose.";
        hint = "Pass drop_threads to lose them.";
    } else if (refused.why == Why::kThread) {
        message = "The thread \"" + refused.name + "\" of the interpreter could not be stopped.";
        hint = "Call again when it waits, or pass drop_threads to lose all other threads.";
    } else if (refused.why == Why::kDebugger) {
        message = "A debugger was used in the interpreter.";
        hint = "Call restart first.";
    }
    return refuse(Refusal{"not_forkable", message, hint, State::kKept});
}

}  // namespace

ToolCoroutine list_sessions(
    ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json /*arguments*/) {
    const auto all = bench.names.list(call->principal());
    nlohmann::json sessions = nlohmann::json::array();
    std::string text;
    for (const auto& [name, session] : all) {
        if (sessions.size() == kSessionsShownMax) {
            break;
        }
        const checkpoint::CheckpointList kept = co_await session->list_checkpoints();
        sessions.push_back(session_json(name, *session, kept));
        text +=
            sessions.back().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    }
    text += std::to_string(all.size()) + " sessions";
    co_return done_answer(
        State::kKept, {{"sessions", std::move(sessions)}, {"total", all.size()}}, text);
}

ToolCoroutine close_session(
    ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const Status closed = bench.names.close(call->principal(), named_session(arguments));
    if (closed.has_error()) {
        co_return refuse(closed.error(), State::kLost);
    }
    co_return done_answer(State::kLost, nlohmann::json::object(), "closed");
}

ToolCoroutine restart(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), named_session(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    const SessionNames::Session& session = found.value();
    const std::string language = text_argument(arguments, "language");
    Status done = ok();  // not a conditional expression: g++ 12 destroys its result twice
    if (language.empty()) {
        done = co_await session->restart();
    } else {
        done = co_await session->restart_language(language);
    }
    if (done.has_error()) {
        co_return refuse(done.error());
    }
    // What this answer tells, the next does not tell again.
    (void)bench.names.look(*session, language.empty() ? session->info().language : language);
    co_return done_answer(
        State::kLost, {{"session_id", session->id()}}, "restarted; files are kept");
}

ToolCoroutine checkpoint_session(
    ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), named_session(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    const SessionNames::Session& session = found.value();
    checkpoint::CheckpointOrder order;
    if (arguments.contains("label")) {
        order.label = text_argument(arguments, "label");
    }
    if (flag_argument(arguments, "drop_threads")) {
        order.on_threads = checkpoint::OnThreads::kDrop;
    }
    const auto made = co_await session->make_checkpoint(std::move(order));
    if (made.has_error()) {
        co_return refuse(made.error());
    }
    if (made.value().refused) {
        co_return refuse_copy(*made.value().refused);
    }
    const checkpoint::Checkpoint& one = made.value().checkpoint;
    nlohmann::json structured = {
        {"session_id", session->id()},
        {"checkpoint", one.id},
        {"unchanged", made.value().unchanged},
        {"files_kept", one.files.complete && one.files.unkept_count == 0},
        {"lost", lost_json(one.lost)}};
    if (!made.value().evicted.empty()) {
        structured["evicted"] = made.value().evicted;
    }
    co_return done_answer(State::kKept, std::move(structured), "checkpoint " + one.id);
}

ToolCoroutine roll_back(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), named_session(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    const SessionNames::Session& session = found.value();
    checkpoint::RollbackOrder order;
    order.checkpoint = text_argument(arguments, "checkpoint");
    order.discard = flag_argument(arguments, "discard");
    const std::string id = order.checkpoint;
    const auto back = co_await session->roll_back(std::move(order));
    if (back.has_error() && back.error().code() == ErrorCode::kNotFound) {
        const auto gone = session->find_gone_checkpoint(id);
        co_return refuse(Refusal{
            gone ? "checkpoint_gone" : "unknown_checkpoint",
            "The session has no checkpoint " + show_text(id).text +
                (gone ? ": it was " + std::string(to_string(*gone)) + "." : "."),
            "list_sessions names the checkpoints of each session.",
            State::kKept});
    }
    if (back.has_error()) {
        co_return refuse(back.error());
    }
    if (back.value().refused) {
        co_return refuse_copy(*back.value().refused);
    }
    // What this answer tells, the next does not tell again.
    (void)bench.names.look(*session, session->info().language);
    const auto& left_as = back.value().left_as;
    co_return done_answer(
        State::kRestored,
        {{"session_id", session->id()},
         {"checkpoint", id},
         {"lost", lost_json(back.value().lost)},
         {"files_failed", back.value().files_failed},
         {"left_as", left_as ? nlohmann::json(*left_as) : nlohmann::json(nullptr)}},
        "rolled back to " + id +
            (back.value().files_failed == 0 ? "; files, too"
                                            : "; some files are not as they were"));
}

}  // namespace cellkeep::mcp
