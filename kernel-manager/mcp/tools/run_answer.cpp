// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/run_answer.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/displays.hpp"
#include "protocol/json.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace cellkeep::mcp {

namespace {

struct Stream {
    nlohmann::json value;  // {text, bytes, omitted_bytes, saved_to}
    std::string text;
    std::string saved_to;
};

Stream show_stream(
    const session::ExecutionResult& result, const char* name, const std::string& text) {
    Stream stream;
    std::size_t bytes = text.size();
    std::size_t omitted = 0;
    std::string note;
    if (const auto cut = result.truncated.find(name); cut != result.truncated.end()) {
        bytes = cut->second.total;
        omitted = cut->second.total - std::min(cut->second.kept, cut->second.total);
        stream.saved_to = cut->second.saved_to;
        note = stream.saved_to.empty() ? std::string() : "the whole is in " + stream.saved_to;
    }
    ShownText shown = show_text(text, note);
    stream.value = {
        {"text", shown.text}, {"bytes", bytes}, {"omitted_bytes", omitted + shown.omitted}};
    if (!stream.saved_to.empty()) {
        stream.value["saved_to"] = stream.saved_to;
    }
    stream.text = std::move(shown.text);
    return stream;
}

void add_section(std::string& text, const std::string& label, std::string_view section) {
    if (section.empty()) {
        return;
    }
    if (!text.empty() && text.back() != '\n') {
        text += "\n";
    }
    if (!label.empty()) {
        text += "[" + label + "]\n";
    }
    text += section;
}

std::string traceback_text(const session::ExecutionError& error) {
    const auto& lines = error.traceback;
    std::string text;
    const std::size_t from = lines.size() - std::min(lines.size(), kTracebackLinesMax);
    for (std::size_t i = from; i < lines.size(); ++i) {
        text += lines[i] + "\n";
    }
    if (text.empty()) {
        text = error.name + (error.message.empty() ? "" : ": " + error.message) + "\n";
    }
    text = show_text(text).text;
    return error.hint.empty() ? text : text + "hint: " + error.hint + "\n";
}

nlohmann::json error_json(const session::ExecutionError& error) {
    nlohmann::json value = {
        {"kind", error.kind},
        {"name", error.name},
        {"message", show_text(error.message).text},
        {"hint", error.hint}};
    if (error.line) {
        value["line"] = *error.line;
    }
    return value;
}

nlohmann::json artifact_json(const session::Artifact& artifact) {
    return {
        {"path", artifact.path},
        {"change", session::to_string(artifact.change)},
        {"bytes", artifact.bytes},
        {"media_type", artifact.media_type}};
}

nlohmann::json file_link(
    const std::string& session_id, const std::string& path, const std::string& media_type) {
    return {
        {"type", "resource_link"},
        {"uri", file_uri(session_id, path)},
        {"name", path},
        {"mimeType", media_type}};
}

void add_files(ToolAnswer& answer, const RunPlace& place, const session::ExecutionResult& result) {
    nlohmann::json artifacts = nlohmann::json::array();
    for (const session::Artifact& artifact : result.artifacts) {
        if (artifacts.size() == kArtifactsShownMax) {
            break;
        }
        artifacts.push_back(artifact_json(artifact));
        answer.content.push_back(file_link(place.session_id, artifact.path, artifact.media_type));
    }
    answer.structured["artifacts"] = std::move(artifacts);
    answer.structured["artifacts_total"] = result.artifacts.size();
}

std::string seconds_text(std::chrono::microseconds time) {
    std::array<char, 32> text{};
    (void)std::snprintf(
        text.data(), text.size(), "%.3f s", static_cast<double>(time.count()) / 1e6);
    return text.data();
}

void describe_place(
    ToolAnswer& answer, const RunPlace& place, State state, const session::Execution& execution) {
    answer.structured["state"] = to_string(state);
    answer.structured["session"] = place.name;
    answer.structured["session_id"] = place.session_id;
    answer.structured["execution_id"] = execution.id();
    if (place.created) {
        answer.structured["session_created"] = true;
    }
    if (state != State::kKept && !place.note.empty()) {
        answer.structured["note"] = place.note;
    }
}

/// "[ok · state kept · session default · exe_… · 0.012 s]"
std::string summary_line(
    const RunPlace& place, std::string_view status, State state, const std::string& tail) {
    return "[" + std::string(status) + " · state " + std::string(to_string(state)) + " · session " +
           place.name + (place.created ? " (new)" : "") + " · " + tail + "]" +
           (state != State::kKept && !place.note.empty() ? "\n" + place.note : "");
}

std::string approval_sentence(const session::ToolCalls::Call& held, OtherApprovers others) {
    const std::string who =
        others == OtherApprovers::kApi
            ? "a person: an administrator answers " + held.approval + " over /v1/approvals"
            : "this client's person, who is asked if the client shows forms";
    return "\nIts call of the tool " + held.tool + " waits for " + who +
           ". Without a yes it is not made.";
}

/// The text of a stream event's data; "" if it is none.
std::string event_text(const session::ExecutionEvent& event) {
    const auto data = protocol::parse_json_object(event.data.join(), "event");
    if (data.has_error()) {
        return {};
    }
    const auto text = data.value().find("text");
    return text == data.value().end() || !text->is_string() ? std::string()
                                                            : text->get<std::string>();
}

/// Events of the other kinds are in the whole answer.
std::string* stream_of(NewOutput& output, const std::string& type) {
    if (type == "stdout") {
        return &output.stdout_text;
    }
    return type == "stderr" ? &output.stderr_text : nullptr;
}

}  // namespace

ToolAnswer finished_answer(const RunPlace& place, const session::Execution& execution) {
    const session::ExecutionResult& result = *execution.result();
    const State state = result.state_kept ? place.before : State::kLost;
    RunPlace told = place;
    if (!result.state_kept) {
        told.note = result.death ? describe(*result.death) + " Its variables are gone."
                                 : "The interpreter was replaced. Its variables are gone.";
    }
    const Stream out = show_stream(result, "stdout", result.stdout_text);
    const Stream err = show_stream(result, "stderr", result.stderr_text);
    const ShownDisplays displays = show_displays(result.outputs);
    const std::string_view status = to_string(result.status);

    ToolAnswer answer;
    answer.failed = result.status != session::ExecutionStatus::kOk;
    describe_place(answer, told, state, execution);
    answer.structured["status"] = status;
    answer.structured["stdout"] = out.value;
    answer.structured["stderr"] = err.value;
    answer.structured["displays"] = displays.displays;
    answer.structured["result"] =
        displays.result ? nlohmann::json(*displays.result) : nlohmann::json(nullptr);
    answer.structured["error"] = result.error ? error_json(*result.error) : nlohmann::json(nullptr);
    answer.structured["wall_ms"] = static_cast<double>(result.metrics.wall.count()) / 1e3;

    std::string text = out.text;
    add_section(text, "stderr", err.text);
    add_section(text, "", displays.text);
    add_section(text, "result", displays.result.value_or(""));
    if (result.error) {
        add_section(text, "error " + result.error->kind, traceback_text(*result.error));
    }
    add_section(
        text,
        "",
        summary_line(
            told, status, state, execution.id() + " · " + seconds_text(result.metrics.wall)));
    answer.add_text(std::move(text));
    for (const auto& picture : displays.pictures) {
        answer.content.push_back(picture);
    }
    add_files(answer, place, result);
    for (const Stream* stream : {&out, &err}) {
        if (!stream->saved_to.empty()) {
            answer.content.push_back(file_link(place.session_id, stream->saved_to, "text/plain"));
        }
    }
    return answer;
}

const session::ToolCalls::Call* call_for_approval(const session::Execution& execution) {
    const auto& waiting = execution.waiting_tool_call();
    return waiting && !waiting->approval.empty() ? &*waiting : nullptr;
}

NewOutput read_new_output(const session::EventJournal& events, std::uint64_t cursor) {
    NewOutput output;
    output.cursor = cursor;
    std::size_t room = kNewOutputBytesMax;
    for (auto next = events.after(output.cursor); next.event; next = events.after(output.cursor)) {
        std::string* stream = stream_of(output, next.event->type);
        if (stream != nullptr) {
            const std::size_t bytes = next.event->data.size();
            if (bytes > room) {
                break;
            }
            room -= bytes;
            *stream += event_text(*next.event);
        }
        output.missed += next.missed;
        output.cursor = next.event->sequence;
    }
    return output;
}

std::string output_text(const session::Execution& execution) {
    NewOutput output;
    if (const auto& result = execution.result()) {
        output.stdout_text = result->stdout_text;
        output.stderr_text = result->stderr_text;
    } else {
        output = read_new_output(execution.events(), 0);
    }
    std::string text = show_text(output.stdout_text).text;
    add_section(text, "stderr", show_text(output.stderr_text).text);
    return text;
}

std::string last_line(const NewOutput& output) {
    std::string_view text = output.stdout_text.empty() ? output.stderr_text : output.stdout_text;
    const std::size_t end = text.find_last_not_of(" \r\n\t");
    if (end == std::string_view::npos) {
        return {};
    }
    text = text.substr(0, end + 1);
    const std::size_t begin = text.find_last_of("\r\n");
    text = begin == std::string_view::npos ? text : text.substr(begin + 1);
    return std::string(text.substr(text.size() - std::min(text.size(), kProgressLineBytes)));
}

ToolAnswer running_answer(
    const RunPlace& place,
    const session::Execution& execution,
    std::uint64_t cursor,
    OtherApprovers others) {
    const NewOutput output = read_new_output(execution.events(), cursor);
    const auto stream = [](const std::string& text) {
        const ShownText shown = show_text(text);
        return nlohmann::json{
            {"text", shown.text}, {"bytes", text.size()}, {"omitted_bytes", shown.omitted}};
    };
    const auto* held = call_for_approval(execution);
    std::string_view status = held != nullptr ? "waiting_approval" : "running";
    if (execution.phase() == session::ExecutionPhase::kQueued) {
        status = "queued";
    }
    ToolAnswer answer;
    describe_place(answer, place, place.before, execution);
    answer.structured["status"] = status;
    answer.structured["stdout"] = stream(output.stdout_text);
    answer.structured["stderr"] = stream(output.stderr_text);
    answer.structured["cursor"] = output.cursor;
    answer.structured["error"] = nullptr;
    if (held != nullptr) {
        answer.structured["approval"] = {{"id", held->approval}, {"tool", held->tool}};
    }
    std::string text = answer.structured["stdout"]["text"].get<std::string>();
    add_section(text, "stderr", answer.structured["stderr"]["text"].get<std::string>());
    add_section(
        text,
        "",
        summary_line(place, status, place.before, execution.id()) +
            (held != nullptr ? approval_sentence(*held, others) : "") +
            "\nIt goes on. Call read_output with execution_id \"" + execution.id() +
            "\", session \"" + place.name + "\" and cursor " + std::to_string(output.cursor) + ".");
    answer.add_text(std::move(text));
    return answer;
}

}  // namespace cellkeep::mcp
