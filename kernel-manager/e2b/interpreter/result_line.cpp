// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/interpreter/result_line.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "protocol/json.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::e2b {

namespace {

using protocol::TextPieces;
using protocol::TextSplicer;

/// The media types that have a member of their own.
constexpr std::array<std::pair<const char*, const char*>, 12> kMembers = {{
    {"text/plain", "text"},
    {"text/html", "html"},
    {"text/markdown", "markdown"},
    {"image/svg+xml", "svg"},
    {"image/png", "png"},
    {"image/jpeg", "jpeg"},
    {"application/pdf", "pdf"},
    {"text/latex", "latex"},
    {"application/json", "json"},
    {"application/javascript", "javascript"},
    {"e2b/data", "data"},
    {"e2b/chart", "chart"},
}};

std::string line_of(const nlohmann::json& value) {
    return protocol::dump_json(value) + "\n";
}

/// nbformat allows a list of lines for each text.
nlohmann::json joined(nlohmann::json value) {
    const bool lines =
        value.is_array() &&
        std::all_of(value.begin(), value.end(), [](const auto& one) { return one.is_string(); });
    if (!lines) {
        return value;
    }
    std::string text;
    for (const auto& one : value) {
        text += one.template get_ref<const std::string&>();
    }
    return text;
}

/// The repr of a string is shown without its quotes.
void drop_quotes(nlohmann::json& text) {
    if (!text.is_string()) {
        return;
    }
    const auto& shown = text.get_ref<const std::string&>();
    const bool quoted = shown.size() >= 2 && shown.front() == shown.back() &&
                        (shown.front() == '\'' || shown.front() == '"');
    if (quoted) {
        text = shown.substr(1, shown.size() - 2);
    }
}

const char* member_of(const std::string& media_type) {
    const auto known = std::find_if(
        kMembers.begin(), kMembers.end(), [&](const auto& one) { return media_type == one.first; });
    return known == kMembers.end() ? nullptr : known->second;
}

std::string result_line(const session::ExecutionEvent& event) {
    nlohmann::json line = {
        {"type", "result"},
        {"is_main_result", event.type == "result"},
        {"extra", nlohmann::json::object()}};
    using protocol::RepeatedKeys;
    auto content =
        event.data.size() > kResultBytesMax
            ? Result<nlohmann::json>(Error(ErrorCode::kLimitExceeded, "result"))
            : protocol::parse_json(
                  event.data.join(), "result", RepeatedKeys::kLastCounts, kResultValuesMax);
    // Anything but an object contains nothing.
    if (content.has_error() || !content.value().contains("data")) {
        line["text"] =
            "[cellkeep: a result of " + std::to_string(event.data.size()) + " bytes is not shown]";
        return line_of(line);
    }
    for (const auto& [type, value] : content.value().at("data").items()) {
        if (const char* member = member_of(type)) {
            const bool is_value = type == "application/json" || type.starts_with("e2b/");
            line[member] = is_value ? std::move(value) : joined(std::move(value));
        } else {
            line["extra"][type] = std::move(value);
        }
    }
    if (line.contains("text")) {
        drop_quotes(line["text"]);
    }
    return line_of(line);
}

std::string error_line(std::string_view name, std::string_view value, std::string traceback) {
    return line_of(
        {{"type", "error"}, {"name", name}, {"value", value}, {"traceback", std::move(traceback)}});
}

std::string guest_error_line(const session::ExecutionEvent& event) {
    const auto content = protocol::parse_json_object(event.data.join(), "error");
    if (content.has_error()) {
        return error_line("Error", "", "");
    }
    std::string traceback;
    for (const auto& one : content.value().value("traceback", nlohmann::json::array())) {
        traceback += traceback.empty() ? "" : "\n";
        traceback += one.is_string() ? one.get<std::string>() : std::string();
    }
    return error_line(
        content.value().value("name", std::string()),
        content.value().value("message", std::string()),
        std::move(traceback));
}

TextPieces stream_line(const session::ExecutionEvent& event, std::int64_t time) {
    return TextSplicer()
        .add("{\"type\":\"" + event.type + "\",\"timestamp\":" + std::to_string(time) + ",")
        .add(event.data.without_first())
        .add("\n")
        .finish();
}

}  // namespace

std::optional<TextPieces> event_line(const session::ExecutionEvent& event, std::int64_t time) {
    if (event.type == "stdout" || event.type == "stderr") {
        return stream_line(event, time);
    }
    if (event.type == "result" || event.type == "display" || event.type == "update_display") {
        return TextPieces(result_line(event));
    }
    if (event.type == "error") {
        return TextPieces(guest_error_line(event));
    }
    return std::nullopt;
}

std::optional<std::string> ending_line(const session::ExecutionResult& result) {
    using Status = session::ExecutionStatus;
    if (result.status == Status::kOk) {
        return std::nullopt;
    }
    // What the sandbox did is never told as if the code had raised it.
    const char* name = "UnexpectedEndOfExecution";
    if (result.status == Status::kError && result.error) {
        return error_line(result.error->name, result.error->message, "");
    }
    if (result.status == Status::kInterrupted) {
        name = "ExecutionAborted";
    } else if (result.status == Status::kTimeout) {
        name = "ExecutionTimeout";
    }
    std::string why(to_string(result.status));
    if (result.error) {
        why += ": " + result.error->message;
        why += result.error->hint.empty() ? "" : " " + result.error->hint;
    }
    return error_line(name, why, "");
}

std::string missed_line(std::uint64_t missed, std::int64_t time) {
    return line_of(
        {{"type", "stderr"},
         {"timestamp", time},
         {"text",
          "[cellkeep: " + std::to_string(missed) +
              " pieces of output came faster than they were read]\n"}});
}

std::string count_line(std::int64_t execution_count) {
    return line_of({{"type", "number_of_executions"}, {"execution_count", execution_count}});
}

std::string keepalive_line() {
    return line_of({{"type", "keepalive"}});
}

std::string end_line() {
    return line_of({{"type", "end_of_execution"}});
}

}  // namespace cellkeep::e2b
