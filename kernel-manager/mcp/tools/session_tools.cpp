// SPDX-License-Identifier: Apache-2.0
//
// list_sessions, close_session and restart.
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

}  // namespace cellkeep::mcp
