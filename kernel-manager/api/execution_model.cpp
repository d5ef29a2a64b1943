// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/execution_model.hpp"

#include "protocol/support/time.hpp"

#include <optional>

namespace cellkeep::agent {

namespace {

nlohmann::json time_or_null(const std::optional<session::Execution::Time>& time) {
    return time ? nlohmann::json(to_iso8601(*time)) : nlohmann::json(nullptr);
}

void add_times(nlohmann::json& model, const session::Execution& execution) {
    model["phase"] = to_string(execution.phase());
    model["created_at"] = to_iso8601(execution.created_at());
    model["started_at"] = time_or_null(execution.started_at());
    model["finished_at"] = time_or_null(execution.finished_at());
    model["language"] = execution.order().language;
    model["code_sha256"] = execution.order().code_sha256;
}

}  // namespace

nlohmann::json finished_json(const session::Execution& execution, Outputs outputs, Origin origin) {
    nlohmann::json model = to_json(*execution.result(), outputs);
    add_times(model, execution);
    model["cached"] = origin == Origin::kCache;
    return model;
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

nlohmann::json unfinished_json(const session::Execution& execution) {
    nlohmann::json model = summary_json(execution);
    model["last_event"] = execution.events().last_sequence();
    return model;
}

nlohmann::json to_json(const session::Execution& execution, Outputs outputs) {
    return execution.result() ? finished_json(execution, outputs) : unfinished_json(execution);
}

}  // namespace cellkeep::agent
