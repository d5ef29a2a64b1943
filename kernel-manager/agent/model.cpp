// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/model.hpp"

#include "protocol/support/time.hpp"

#include <string>

namespace cellkeep::agent {

namespace {

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

double to_ms(std::chrono::microseconds time) {
    return static_cast<double>(time.count()) / 1000.0;
}

nlohmann::json to_json(const session::SessionLimits& limits) {
    return {
        {"cpu_cores", limits.cpu_cores},
        {"memory_mb", limits.memory_mb},
        {"disk_mb", limits.disk_mb},
        {"processes", limits.processes},
        {"wall_ms", limits.wall.count()},
        {"cpu_ms", limits.cpu.count()},
        {"output_bytes", limits.output_bytes},
        {"artifact_bytes", limits.artifact_bytes},
        {"executions", or_null(limits.executions)},
        {"idle_s", limits.idle.count()},
        {"lifetime_s", limits.lifetime.count()},
    };
}

nlohmann::json to_json(const sandbox::IsolationReport& isolation) {
    nlohmann::json controls = nlohmann::json::array();
    for (const sandbox::Control& control : isolation.controls) {
        nlohmann::json row = {
            {"name", control.name},
            {"state", to_string(control.state)},
            {"mechanism", control.mechanism},
        };
        if (control.state != sandbox::ControlState::kApplied) {
            row["detail"] = control.detail;
            row["fix"] = control.fix;
        }
        controls.push_back(std::move(row));
    }
    return {{"complete", isolation.complete()}, {"controls", std::move(controls)}};
}

nlohmann::json to_json(const session::ExecutionError& error) {
    return {
        {"kind", error.kind},
        {"name", error.name},
        {"message", error.message},
        {"line", or_null(error.line)},
        {"column", or_null(error.column)},
        {"traceback", error.traceback},
        {"hint", error.hint},
    };
}

}  // namespace

nlohmann::json to_json(const session::SessionInfo& info) {
    nlohmann::json death = nullptr;
    if (info.death) {
        death = {{"reason", to_string(*info.death)}, {"message", describe(*info.death)}};
    }
    return {
        {"id", info.id},
        {"kernel_id", info.kernel_id},
        {"state", to_string(info.state)},
        {"death", std::move(death)},
        {"language", info.language},
        {"environment", {{"name", info.environment.name}, {"digest", info.environment.digest}}},
        {"limits", to_json(info.limits)},
        {"network", {{"mode", "none"}}},
        {"isolation", to_json(info.isolation)},
        {"metadata", info.metadata},
        {"owner", info.owner},
        {"created_at", to_iso8601(info.created_at)},
        {"last_activity", to_iso8601(info.last_activity)},
        {"executions", info.executions},
        {"restarts", info.restarts},
        {"connection_file",
         info.connection_file.empty() ? nlohmann::json(nullptr)
                                      : nlohmann::json(info.connection_file)},
        {"output_dropped", info.output_dropped},
    };
}

nlohmann::json to_json(const session::ExecutionResult& result, Outputs outputs) {
    nlohmann::json truncated = nlohmann::json::object();
    for (const auto& [stream, cut] : result.truncated) {
        truncated[stream] = {
            {"kept", cut.kept},
            {"total", cut.total},
            {"saved_to",
             cut.saved_to.empty() ? nlohmann::json(nullptr) : nlohmann::json(cut.saved_to)},
        };
    }
    nlohmann::json model = {
        {"id", result.id},
        {"session_id", result.session_id},
        {"status", to_string(result.status)},
        {"execution_count", or_null(result.execution_count)},
        {"stdout", result.stdout_text},
        {"stderr", result.stderr_text},
        {"result", result.result},
        {"displays", result.displays},
        {"error", result.error ? to_json(*result.error) : nlohmann::json(nullptr)},
        {"exit_code", or_null(result.exit_code)},
        {"state", result.state_kept ? "kept" : "lost"},
        {"truncated", std::move(truncated)},
        {"metrics",
         {{"wall_ms", to_ms(result.metrics.wall)},
          {"cpu_ms", to_ms(result.metrics.cpu)},
          {"memory_peak_bytes", result.metrics.memory_peak_bytes},
          {"queued_ms", to_ms(result.metrics.queued)}}},
    };
    if (outputs == Outputs::kInclude) {
        model["outputs"] = result.outputs;
    }
    return model;
}

nlohmann::json to_json(const sandbox::Entry& entry) {
    std::string_view kind = "other";
    if (entry.kind == sandbox::EntryKind::kFile) {
        kind = "file";
    } else if (entry.kind == sandbox::EntryKind::kDirectory) {
        kind = "directory";
    }
    return {
        {"path", entry.path},
        {"kind", kind},
        {"bytes", entry.bytes},
        {"modified", to_iso8601(entry.modified)},
    };
}

}  // namespace cellkeep::agent
