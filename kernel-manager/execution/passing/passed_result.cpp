// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/passing/passed_result.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace cellkeep::session {

using nlohmann::json;
using protocol::RawJson;
using std::chrono::microseconds;

namespace {

template <typename T>
json value_or_null(const std::optional<T>& value) {
    return value ? json(*value) : json();
}

template <typename T>
std::optional<T> find_value(const json& text, const char* name) {
    const json& value = text.at(name);
    return value.is_null() ? std::nullopt : std::optional(value.get<T>());
}

std::string raw(const RawJson& value) {
    return std::string(value.text());
}

RawJson read_raw(const json& text, const char* name) {
    return RawJson(text.at(name).get<std::string>());
}

json write_bundle(const MimeBundle& bundle) {
    return {{"data", raw(bundle.data)}, {"metadata", raw(bundle.metadata)}};
}

MimeBundle read_bundle(const json& text) {
    return {read_raw(text, "data"), read_raw(text, "metadata")};
}

json write_error(const ExecutionError& error) {
    return {
        {"kind", error.kind},
        {"name", error.name},
        {"message", error.message},
        {"line", value_or_null(error.line)},
        {"column", value_or_null(error.column)},
        {"traceback", error.traceback},
        {"hint", error.hint}};
}

ExecutionError read_error(const json& text) {
    return {
        text.at("kind").get<std::string>(),
        text.at("name").get<std::string>(),
        text.at("message").get<std::string>(),
        find_value<int>(text, "line"),
        find_value<int>(text, "column"),
        text.at("traceback").get<std::vector<std::string>>(),
        text.at("hint").get<std::string>()};
}

json write_truncated(const std::map<std::string, Truncation>& all) {
    json text = json::object();
    for (const auto& [stream, cut] : all) {
        text[stream] = {
            {"kept", cut.kept},
            {"total", cut.total},
            {"saved_to", cut.saved_to},
            {"not_saved", cut.not_saved}};
    }
    return text;
}

std::map<std::string, Truncation> read_truncated(const json& text) {
    std::map<std::string, Truncation> all;
    for (const auto& [stream, cut] : text.items()) {
        all[stream] = {
            cut.at("kept").get<std::uint64_t>(),
            cut.at("total").get<std::uint64_t>(),
            cut.at("saved_to").get<std::string>(),
            cut.at("not_saved").get<std::string>()};
    }
    return all;
}

json write_artifacts(const std::vector<Artifact>& artifacts) {
    json all = json::array();
    for (const Artifact& artifact : artifacts) {
        all.push_back(
            {{"path", artifact.path},
             {"created", artifact.change == Artifact::Change::kCreated},
             {"bytes", artifact.bytes},
             {"sha256", artifact.sha256},
             {"media_type", artifact.media_type}});
    }
    return all;
}

std::vector<Artifact> read_artifacts(const json& text) {
    std::vector<Artifact> artifacts;
    for (const json& one : text) {
        artifacts.push_back(
            {one.at("path").get<std::string>(),
             one.at("created").get<bool>() ? Artifact::Change::kCreated
                                           : Artifact::Change::kModified,
             one.at("bytes").get<std::uint64_t>(),
             one.at("sha256").get<std::string>(),
             one.at("media_type").get<std::string>()});
    }
    return artifacts;
}

json write_metrics(const ExecutionMetrics& metrics) {
    return {
        {"wall", metrics.wall.count()},
        {"cpu", metrics.cpu.count()},
        {"memory_peak_bytes", metrics.memory_peak_bytes},
        {"memory_peak_is_own", metrics.memory_peak_is_own},
        {"queued", metrics.queued.count()}};
}

ExecutionMetrics read_metrics(const json& text) {
    return {
        microseconds(text.at("wall").get<std::int64_t>()),
        microseconds(text.at("cpu").get<std::int64_t>()),
        text.at("memory_peak_bytes").get<std::uint64_t>(),
        text.at("memory_peak_is_own").get<bool>(),
        microseconds(text.at("queued").get<std::int64_t>())};
}

}  // namespace

json write_output(const NotebookOutput& output) {
    if (const auto* stream = std::get_if<StreamOutput>(&output)) {
        return {{"kind", "stream"}, {"name", stream->name}, {"inside", stream->inside}};
    }
    if (const auto* display = std::get_if<DisplayOutput>(&output)) {
        return {{"kind", "display"}, {"bundle", write_bundle(*display->bundle)}};
    }
    if (const auto* result = std::get_if<ResultOutput>(&output)) {
        return {
            {"kind", "result"},
            {"bundle", write_bundle(result->bundle)},
            {"count", value_or_null(result->execution_count)}};
    }
    const auto& error = std::get<ErrorOutput>(output);
    return {
        {"kind", "error"},
        {"ename", raw(error.ename)},
        {"evalue", raw(error.evalue)},
        {"traceback", raw(error.traceback)}};
}

NotebookOutput read_output(const json& text) {
    const auto kind = text.at("kind").get<std::string>();
    if (kind == "stream") {
        return StreamOutput{
            text.at("name").get<std::string>(), text.at("inside").get<std::string>()};
    }
    if (kind == "display") {
        return DisplayOutput{std::make_shared<MimeBundle>(read_bundle(text.at("bundle")))};
    }
    if (kind == "result") {
        return ResultOutput{
            read_bundle(text.at("bundle")), find_value<std::int64_t>(text, "count")};
    }
    return ErrorOutput{
        read_raw(text, "ename"), read_raw(text, "evalue"), read_raw(text, "traceback")};
}

json write_result(const ExecutionResult& result) {
    json outputs = json::array();
    for (const NotebookOutput& output : result.outputs) {
        outputs.push_back(write_output(output));
    }
    json text = {
        {"id", result.id},
        {"session_id", result.session_id},
        {"status", static_cast<int>(result.status)},
        {"execution_count", value_or_null(result.execution_count)},
        {"stdout", result.stdout_text},
        {"stderr", result.stderr_text},
        {"result", raw(result.result)},
        {"outputs", std::move(outputs)},
        {"exit_code", value_or_null(result.exit_code)},
        {"state_kept", result.state_kept},
        {"truncated", write_truncated(result.truncated)},
        {"metrics", write_metrics(result.metrics)},
        {"artifacts", write_artifacts(result.artifacts)},
        {"artifacts_complete", result.artifacts_complete},
        {"reasoning", result.reasoning},
        {"metadata", result.metadata},
        {"retained_bytes", result.retained_bytes}};
    if (result.error) {
        text["error"] = write_error(*result.error);
    }
    if (result.death) {
        text["death"] = {
            {"kind", static_cast<int>(result.death->kind)}, {"detail", result.death->detail}};
    }
    if (result.restored) {
        text["restored"] = {
            {"checkpoint", result.restored->checkpoint}, {"undone", result.restored->undone}};
    }
    return text;
}

ExecutionResult read_result(const json& text) {
    ExecutionResult result;
    result.id = text.at("id").get<std::string>();
    result.session_id = text.at("session_id").get<std::string>();
    result.status = static_cast<ExecutionStatus>(text.at("status").get<int>());
    result.execution_count = find_value<std::int64_t>(text, "execution_count");
    result.stdout_text = text.at("stdout").get<std::string>();
    result.stderr_text = text.at("stderr").get<std::string>();
    result.result = read_raw(text, "result");
    for (const json& output : text.at("outputs")) {
        result.outputs.push_back(read_output(output));
    }
    result.exit_code = find_value<int>(text, "exit_code");
    result.state_kept = text.at("state_kept").get<bool>();
    result.truncated = read_truncated(text.at("truncated"));
    result.metrics = read_metrics(text.at("metrics"));
    result.artifacts = read_artifacts(text.at("artifacts"));
    result.artifacts_complete = text.at("artifacts_complete").get<bool>();
    result.reasoning = text.at("reasoning").get<std::string>();
    result.metadata = text.at("metadata");
    result.retained_bytes = text.at("retained_bytes").get<std::uint64_t>();
    if (text.contains("error")) {
        result.error = read_error(text.at("error"));
    }
    if (text.contains("death")) {
        const json& death = text.at("death");
        result.death = Death{
            static_cast<Death::Kind>(death.at("kind").get<int>()), death.at("detail").get<int>()};
    }
    if (text.contains("restored")) {
        const json& restored = text.at("restored");
        result.restored = RestoredState{
            restored.at("checkpoint").get<std::string>(),
            restored.at("undone").get<std::vector<std::string>>()};
    }
    return result;
}

}  // namespace cellkeep::session
