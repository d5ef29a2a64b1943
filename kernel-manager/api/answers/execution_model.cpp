// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/execution_model.hpp"

#include "protocol/json.hpp"
#include "protocol/support/time.hpp"

#include <optional>

namespace cellkeep::api {

namespace {

nlohmann::json time_or_null(const std::optional<session::Execution::Time>& time) {
    return time ? nlohmann::json(to_iso8601(*time)) : nlohmann::json(nullptr);
}

/// A run that waits for a person is no longer just a run.
std::string_view phase_of(const session::Execution& execution) {
    const auto& call = execution.waiting_tool_call();
    return call && !call->approval.empty() ? "waiting_approval" : to_string(execution.phase());
}

void add_times(nlohmann::json& model, const session::Execution& execution) {
    model["phase"] = phase_of(execution);
    model["created_at"] = to_iso8601(execution.created_at());
    model["started_at"] = time_or_null(execution.started_at());
    model["finished_at"] = time_or_null(execution.finished_at());
    model["language"] = execution.order().language;
    model["code_sha256"] = execution.order().code_sha256;
}

/// The model with what the guest said.
protocol::TextPieces splice_output(
    const nlohmann::json& model,
    const session::ExecutionResult& result,
    const protocol::RawJson& stdout_json,
    const protocol::RawJson& stderr_json,
    Outputs outputs) {
    std::string small = protocol::dump_json(model);
    small.pop_back();  // the object goes on
    protocol::TextSplicer text;
    text.add(small).add(R"(,"stdout":)").add(stdout_json);
    text.add(R"(,"stderr":)").add(stderr_json);
    text.add(R"(,"result":)").add(result.result);
    text.add(R"(,"displays":)").add(session::displays_text(result.outputs));
    if (outputs == Outputs::kInclude) {
        text.add(R"(,"outputs":)").add(session::outputs_text(result.outputs));
    }
    return text.add("}").finish();
}

/// The call of a tool that waits for its answer, or null.
protocol::TextPieces tool_call_text(const session::Execution& execution) {
    const auto& call = execution.waiting_tool_call();
    if (!call) {
        return protocol::TextPieces("null");
    }
    protocol::TextSplicer text;
    text.add(R"({"call":")").add(call->id).add(R"(","tool":")").add(call->tool);
    text.add(R"(","answered_by":")").add(call->is_operators ? "server" : "caller");
    if (!call->approval.empty()) {
        text.add(R"(","approval":")").add(call->approval);
    }
    return text.add(R"(","arguments":)").add(call->arguments).add("}").finish();
}

}  // namespace

protocol::TextPieces finished_text(
    const session::Execution& execution,
    Outputs outputs,
    Origin origin,
    const Annotations& annotations) {
    const session::ExecutionResult& result = *execution.result();
    nlohmann::json model = to_json(result);
    add_times(model, execution);
    model["cached"] = origin == Origin::kCache;
    if (origin == Origin::kCache) {
        model["reasoning"] = annotations.reasoning;
        model["metadata"] = annotations.metadata;
    }
    return splice_output(model, result, execution.stdout_json(), execution.stderr_json(), outputs);
}

protocol::TextPieces result_text(const session::ExecutionResult& result, Outputs outputs) {
    const auto quoted = [](const std::string& text) {
        return protocol::RawJson(protocol::dump_json(text));
    };
    return splice_output(
        to_json(result), result, quoted(result.stdout_text), quoted(result.stderr_text), outputs);
}

nlohmann::json summary_json(const session::Execution& execution) {
    const auto& result = execution.result();
    nlohmann::json model = {
        {"id", execution.id()},
        {"session_id", execution.order().session_id},
        {"status", result ? nlohmann::json(to_string(result->status)) : nlohmann::json(nullptr)},
        {"reasoning", execution.order().reasoning},
        {"metadata", execution.order().metadata}};
    add_times(model, execution);
    return model;
}

protocol::TextPieces unfinished_text(const session::Execution& execution) {
    nlohmann::json model = summary_json(execution);
    model["last_event"] = execution.events().last_sequence();
    std::string small = protocol::dump_json(model);
    small.pop_back();  // the object goes on
    protocol::TextSplicer text;
    text.add(small).add(R"(,"tool_call":)").add(tool_call_text(execution));
    return text.add("}").finish();
}

protocol::TextPieces to_text(const session::Execution& execution, Outputs outputs) {
    return execution.result() ? finished_text(execution, outputs) : unfinished_text(execution);
}

}  // namespace cellkeep::api
