// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/model.hpp"

#include "kernel-manager/api/bodies/network_body.hpp"
#include "kernel-manager/execution/artifacts/media_type.hpp"
#include "kernel-manager/execution/death.hpp"
#include "protocol/base64.hpp"
#include "protocol/json.hpp"
#include "protocol/support/time.hpp"

#include <algorithm>
#include <string>

namespace cellkeep::api {

namespace {

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json count_or_null(const std::optional<std::chrono::milliseconds>& time) {
    return time ? nlohmann::json(time->count()) : nlohmann::json(nullptr);
}

double to_ms(std::chrono::microseconds time) {
    return static_cast<double>(time.count()) / 1000.0;
}

nlohmann::json part_json(const session::SessionLimits& limits) {
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
        {"total_wall_ms", count_or_null(limits.total_wall)},
        {"total_cpu_ms", count_or_null(limits.total_cpu)},
        {"total_output_bytes", or_null(limits.total_output_bytes)},
        {"total_artifact_bytes", or_null(limits.total_artifact_bytes)},
        {"consecutive_failures", limits.consecutive_failures.value_or(0)},
        {"idle_s", limits.idle.count()},
        {"lifetime_s", limits.lifetime.count()},
    };
}

nlohmann::json part_json(const session::BudgetUse& used) {
    return {
        {"executions", used.executions},
        {"total_wall_ms", to_ms(used.wall)},
        {"total_cpu_ms", to_ms(used.cpu)},
        {"total_output_bytes", used.output_bytes},
        {"total_artifact_bytes", used.artifact_bytes},
    };
}

nlohmann::json part_json(const session::CircuitInfo& circuit) {
    return {
        {"state", to_string(circuit.state)},
        {"failures", circuit.failures},
        {"threshold", circuit.threshold},
        {"retry_after_ms", count_or_null(circuit.retry_after)},
    };
}

nlohmann::json part_json(const sandbox::IsolationReport& isolation) {
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

/// A path may be any bytes. What is not UTF-8 (RFC 3629) is shown with U+FFFD in it, and beside it
/// stands what it really is.
nlohmann::json with_path(const std::string& path, nlohmann::json object) {
    object["path"] = path;
    // What is not UTF-8 does not come back as it was.
    const auto back = protocol::parse_json(protocol::dump_json(path), "path");
    if (back.has_error() || back.value() != path) {
        object["path_base64"] = protocol::encode_base64(path);
    }
    return object;
}

nlohmann::json part_json(const session::Artifact& artifact) {
    return with_path(
        artifact.path,
        {{"change", to_string(artifact.change)},
         {"bytes", artifact.bytes},
         {"sha256",
          artifact.sha256.empty() ? nlohmann::json(nullptr) : nlohmann::json(artifact.sha256)},
         {"media_type", artifact.media_type}});
}

nlohmann::json part_json(const session::ExecutionError& error) {
    return {
        {"kind", error_kind(error.kind)},
        {"name", error.name},
        {"message", error.message},
        {"line", or_null(error.line)},
        {"column", or_null(error.column)},
        {"traceback", error.traceback},
        {"hint", error.hint},
    };
}

nlohmann::json death_json(const std::optional<session::Death>& death) {
    return death ? nlohmann::json{{"reason", to_string(*death)}, {"message", describe(*death)}}
                 : nlohmann::json(nullptr);
}

nlohmann::json branch_json(const std::optional<session::BranchInfo>& branch) {
    if (!branch) {
        return nullptr;
    }
    return {
        {"session", branch->parent},
        {"checkpoint", branch->checkpoint},
        {"label", branch->label ? nlohmann::json(*branch->label) : nlohmann::json(nullptr)}};
}

}  // namespace

const std::vector<std::string_view>& error_kinds() {
    static const std::vector<std::string_view> kinds = {
        "syntax",
        "runtime",
        "exit_status",
        "driver",
        "import",
        "memory",
        "interrupt",
        "wall_timeout",
        "cpu_timeout",
        "oom",
        "disk_full",
        "files",
        "output_limit",
        "too_many_processes",
        "too_many_open_files",
        "file_too_large",
        "forbidden",
        "dead",
        "no_reply",
        "server_died"};
    return kinds;
}

std::string error_kind(const std::string& kind) {
    const auto& known = error_kinds();
    return std::find(known.begin(), known.end(), kind) == known.end() ? "runtime" : kind;
}

nlohmann::json to_json(const session::SessionInfo& info) {
    nlohmann::json languages = nlohmann::json::array();
    for (const session::LanguageInfo& one : info.languages) {
        languages.push_back(
            {{"name", one.name},
             {"state", one.state ? to_string(*one.state) : std::string_view("unused")},
             {"death", death_json(one.death)},
             {"restarts", one.restarts}});
    }
    return {
        {"id", info.id},
        {"kernel_id", info.kernel_id},
        {"state", to_string(info.state)},
        {"frozen", info.frozen},
        {"death", death_json(info.death)},
        {"language", info.language},
        {"languages", std::move(languages)},
        {"environment", {{"name", info.environment.name}, {"digest", info.environment.digest}}},
        {"limits", part_json(info.limits)},
        {"network", network_to_json(info.network, info.traffic)},
        {"isolation", part_json(info.isolation)},
        {"checkpoints", {{"auto", to_string(info.auto_checkpoints)}, {"branches", info.branches}}},
        {"metadata", info.metadata},
        {"branch_of", branch_json(info.branch)},
        {"owner", info.owner},
        {"created_at", to_iso8601(info.created_at)},
        {"last_activity", to_iso8601(info.last_activity)},
        {"executions", info.executions},
        {"used", part_json(info.used)},
        {"circuit_breaker", part_json(info.circuit)},
        {"restarts", info.restarts},
        {"connection_file",
         info.connection_file.empty() ? nlohmann::json(nullptr)
                                      : nlohmann::json(info.connection_file)},
        {"output_dropped", info.output_dropped},
    };
}

nlohmann::json to_json(const session::ExecutionResult& result) {
    nlohmann::json truncated = nlohmann::json::object();
    for (const auto& [stream, cut] : result.truncated) {
        truncated[stream] = {
            {"kept", cut.kept},
            {"total", cut.total},
            {"saved_to",
             cut.saved_to.empty() ? nlohmann::json(nullptr) : nlohmann::json(cut.saved_to)},
        };
        if (!cut.not_saved.empty()) {
            truncated[stream]["not_saved"] = cut.not_saved;
        }
    }
    nlohmann::json artifacts = nlohmann::json::array();
    for (const session::Artifact& artifact : result.artifacts) {
        artifacts.push_back(part_json(artifact));
    }
    nlohmann::json answer = {
        {"id", result.id},
        {"session_id", result.session_id},
        {"status", to_string(result.status)},
        {"execution_count", or_null(result.execution_count)},
        {"error", result.error ? part_json(*result.error) : nlohmann::json(nullptr)},
        {"exit_code", or_null(result.exit_code)},
        {"state",
         result.state_kept ? "kept"
         : result.restored ? "restored"
                           : "lost"},
        {"artifacts", std::move(artifacts)},
        {"artifacts_complete", result.artifacts_complete},
        {"truncated", std::move(truncated)},
        {"metrics",
         {{"wall_ms", to_ms(result.metrics.wall)},
          {"cpu_ms", to_ms(result.metrics.cpu)},
          {"memory_peak_bytes", result.metrics.memory_peak_bytes},
          {"memory_peak_of", result.metrics.memory_peak_is_own ? "execution" : "session"},
          {"queued_ms", to_ms(result.metrics.queued)}}},
        {"reasoning", result.reasoning},
        {"metadata", result.metadata},
    };
    if (result.restored) {
        answer["restored"] = {
            {"checkpoint", result.restored->checkpoint}, {"undone", result.restored->undone}};
    }
    return answer;
}

nlohmann::json to_json(const sandbox::Entry& entry) {
    std::string_view kind = "other";
    if (entry.kind == sandbox::EntryKind::kFile) {
        kind = "file";
    } else if (entry.kind == sandbox::EntryKind::kDirectory) {
        kind = "directory";
    }
    nlohmann::json shown = with_path(
        entry.path,
        {{"kind", kind}, {"bytes", entry.bytes}, {"modified", to_iso8601(entry.modified)}});
    if (entry.kind == sandbox::EntryKind::kFile) {
        shown["media_type"] = session::media_type_of(entry.path);
    }
    return shown;
}

}  // namespace cellkeep::api
