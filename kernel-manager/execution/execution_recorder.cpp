// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_recorder.hpp"

#include "kernel-manager/execution/error_text.hpp"
#include "kernel-manager/execution/exit_code.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::session {

namespace {

using nlohmann::json;

std::string string_field(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

json object_field(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_object() ? *found : json::object();
}

std::optional<int> positive_field(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number_integer()) {
        return std::nullopt;
    }
    const auto value = found->get<std::int64_t>();
    return value > 0 && value < 1'000'000'000 ? std::optional(static_cast<int>(value))
                                              : std::nullopt;
}

}  // namespace

ExecutionRecorder::ExecutionRecorder(
    std::string execution_id,
    std::string session_id,
    std::string stdin_text,
    std::uint64_t output_bytes_max,
    bool has_network)
    : stdout_(output_bytes_max, ".cellkeep/" + execution_id + "/stdout.txt"),
      stderr_(output_bytes_max, ".cellkeep/" + execution_id + "/stderr.txt"),
      stdin_text_(std::move(stdin_text)),
      output_bytes_max_(output_bytes_max),
      has_network_(has_network) {
    result_.id = std::move(execution_id);
    result_.session_id = std::move(session_id);
}

void ExecutionRecorder::on_output(
    const protocol::Message& message, const sandbox::Workspace* workspace) {
    const std::string& type = message.header().msg_type;
    if (type == "status" || type == "execute_input") {
        return;
    }
    const auto content = message.parse_content();
    if (content.has_error()) {
        return;  // the guest's own message is malformed: it is a guest that lies about itself
    }
    if (type == "clear_output") {
        clear_before_next_ = true;
        const auto wait = content.value().find("wait");
        if (wait != content.value().end() && wait->is_boolean() && wait->get<bool>()) {
            return;
        }
    }
    if (std::exchange(clear_before_next_, false)) {
        stdout_.clear();
        stderr_.clear();
        result_.displays = json::array();
        result_.outputs = json::array();
        message_bytes_ = 0;
        output_text_bytes_ = 0;
    }
    const std::size_t bytes = message.content_json().size();
    if (type == "stream") {
        add_stream(content.value(), workspace);
    } else if (type == "update_display_data") {
        update_display(content.value(), bytes);
    } else if (type == "error") {
        add_error(content.value(), take_room(bytes));
    } else if (!take_room(bytes)) {
        return;
    } else if (type == "display_data") {
        add_display(content.value());
    } else if (type == "execute_result") {
        add_result(content.value());
    }
}

void ExecutionRecorder::add_stream(const json& content, const sandbox::Workspace* workspace) {
    const std::string name = string_field(content, "name") == "stderr" ? "stderr" : "stdout";
    const std::string text = string_field(content, "text");
    (name == "stderr" ? stderr_ : stdout_).append(text, workspace);

    // The notebook form is bounded like the texts; past the bound it ends with one note.
    if (text.empty() || output_text_bytes_ > output_bytes_max_ ||
        result_.outputs.size() >= limits::kAnswerOutputsMax) {
        return;
    }
    output_text_bytes_ += text.size();
    std::string shown = text;
    if (output_text_bytes_ > output_bytes_max_) {
        shown = "\n… output limit reached, the rest is left out …\n";
    }
    auto& outputs = result_.outputs;
    if (!outputs.empty() && outputs.back()["output_type"] == "stream" &&
        outputs.back()["name"] == name) {
        outputs.back()["text"].get_ref<std::string&>() += shown;
    } else {
        outputs.push_back({{"output_type", "stream"}, {"name", name}, {"text", shown}});
    }
}

bool ExecutionRecorder::take_room(std::size_t bytes) {
    if (message_bytes_ + bytes > limits::kAnswerDisplayBytesMax ||
        result_.outputs.size() >= limits::kAnswerOutputsMax) {
        ++displays_left_out_;
        return false;
    }
    message_bytes_ += bytes;
    return true;
}

void ExecutionRecorder::add_display(const json& content) {
    const json data = object_field(content, "data");
    json display = {{"data", data}, {"metadata", object_field(content, "metadata")}};
    json output = display;
    output["output_type"] = "display_data";
    const std::string display_id = string_field(object_field(content, "transient"), "display_id");
    if (!display_id.empty()) {
        display["display_id"] = display_id;
        output["display_id"] = display_id;  // removed by finish: nbformat has no such field
    }
    result_.displays.push_back(std::move(display));
    result_.outputs.push_back(std::move(output));
}

void ExecutionRecorder::update_display(const json& content, std::size_t bytes) {
    const std::string display_id = string_field(object_field(content, "transient"), "display_id");
    if (display_id.empty()) {
        return;
    }
    // One message may replace many displays: each copy counts.
    std::vector<json*> shown;
    for (auto* list : {&result_.displays, &result_.outputs}) {
        for (json& display : *list) {
            if (string_field(display, "display_id") == display_id) {
                shown.push_back(&display);
            }
        }
    }
    if (shown.empty() || !take_room(bytes * shown.size())) {
        return;
    }
    for (json* display : shown) {
        (*display)["data"] = object_field(content, "data");
        (*display)["metadata"] = object_field(content, "metadata");
    }
}

void ExecutionRecorder::add_result(const json& content) {
    const json data = object_field(content, "data");
    result_.result = data;
    const auto count = content.find("execution_count");
    result_.outputs.push_back(
        {{"output_type", "execute_result"},
         {"data", data},
         {"metadata", object_field(content, "metadata")},
         {"execution_count",
          count != content.end() && count->is_number_integer() ? *count : json(nullptr)}});
}

void ExecutionRecorder::add_error(const json& content, bool whole) {
    ExecutionError error;
    error.kind = "runtime";
    error.name = string_field(content, "ename");
    error.message = strip_escapes(string_field(content, "evalue"));
    if (!whole) {
        // No room: the error itself must still be told.
        error.name.resize(std::min<std::size_t>(error.name.size(), limits::kHeaderFieldBytesMax));
        error.message = "(the error is too long for this answer)";
        result_.error = std::move(error);
        return;
    }
    json traceback = json::array();
    const auto lines = content.find("traceback");
    if (lines != content.end() && lines->is_array()) {
        for (const json& line : *lines) {
            if (line.is_string()) {
                error.traceback.push_back(strip_escapes(line.get_ref<const std::string&>()));
                traceback.push_back(line);
            }
        }
    }
    result_.outputs.push_back(
        {{"output_type", "error"},
         {"ename", error.name},
         {"evalue", string_field(content, "evalue")},
         {"traceback", std::move(traceback)}});
    result_.error = std::move(error);
}

void ExecutionRecorder::on_reply(const protocol::Message& reply) {
    replied_ = true;
    const auto content = reply.parse_content();
    if (content.has_error()) {
        return;  // as in on_output
    }
    const auto count = content.value().find("execution_count");
    if (count != content.value().end() && count->is_number_integer()) {
        result_.execution_count = count->get<std::int64_t>();
    }
    const auto metadata = reply.parse_metadata();
    const json details = metadata.has_value() ? metadata.value() : json::object();
    if (string_field(content.value(), "status") == "ok") {
        result_.status = ExecutionStatus::kOk;
        result_.exit_code = exit_code_of(details).value_or(0);
        return;
    }
    result_.status = ExecutionStatus::kError;
    result_.exit_code = exit_code_of(details).value_or(1);
    if (!result_.error.has_value()) {
        // A cell that failed without an error message on iopub: the reply has the same fields.
        const std::size_t outputs = result_.outputs.size();
        add_error(content.value(), take_room(reply.content_json().size()));
        if (result_.outputs.size() > outputs) {
            result_.outputs.erase(outputs);
        }
    }
    classify_error(details);
}

void ExecutionRecorder::classify_error(const json& reply_metadata) {
    ExecutionError& error = *result_.error;
    const json details = object_field(object_field(reply_metadata, "cellkeep"), "error");
    if (const std::string kind = string_field(details, "kind"); !kind.empty()) {
        error.kind = kind;
    }
    error.line = positive_field(details, "line");
    error.column = positive_field(details, "column");
    if (error.name == "OSError" && error.message.find("[Errno 28]") != std::string::npos) {
        error.kind = "disk_full";
        result_.status = ExecutionStatus::kDiskFull;
    }
    error.hint = hint_of(error);
}

std::string ExecutionRecorder::hint_of(const ExecutionError& error) const {
    return hint_for(
        {.name = error.name, .kind = error.kind, .line = error.line, .has_network = has_network_});
}

json ExecutionRecorder::next_input() {
    if (stdin_offset_ >= stdin_text_.size()) {
        return {{"value", ""}, {"eof", true}};
    }
    const std::size_t end = std::min(stdin_text_.find('\n', stdin_offset_), stdin_text_.size());
    std::string line = stdin_text_.substr(stdin_offset_, end - stdin_offset_);
    stdin_offset_ = end + 1;
    return {{"value", std::move(line)}};
}

void ExecutionRecorder::close_texts() {
    auto close = [this](BoundedText& text, const char* name, std::string& into) {
        auto outcome = text.finish();
        into = std::move(outcome.text);
        if (outcome.truncation.has_value()) {
            result_.truncated[name] = *std::move(outcome.truncation);
        }
    };
    close(stdout_, "stdout", result_.stdout_text);
    close(stderr_, "stderr", result_.stderr_text);
    stdin_text_ = {};
    result_.retained_bytes =
        4 * message_bytes_ +
        2 * (result_.stdout_text.size() + result_.stderr_text.size() + output_text_bytes_) +
        512 * result_.outputs.size() + 4096;
    if (displays_left_out_ > 0) {
        const std::uint64_t kept = result_.displays.size();
        result_.truncated["displays"] = {kept, kept + displays_left_out_, "", ""};
    }
    for (auto* list : {&result_.displays, &result_.outputs}) {
        for (json& display : *list) {
            display.erase("display_id");
        }
    }
}

ExecutionResult ExecutionRecorder::finish(Cut cut) {
    close_texts();
    if (result_.status == ExecutionStatus::kOk && result_.error.has_value()) {
        // Code can reply in its kernel's place, or show an error that it has caught.
        result_.status = ExecutionStatus::kError;
        result_.exit_code = 1;
        result_.error->hint = hint_of(*result_.error);
    }
    if (!replied_ && cut == Cut::kNone) {
        // Only a kernel that breaks the protocol ends a request without a reply.
        result_.status = ExecutionStatus::kDead;
        result_.error.emplace();
        result_.error->kind = "no_reply";
        result_.error->name = "NoReply";
        result_.error->message = "The interpreter ended the request without a reply.";
        result_.error->hint = hint_of(*result_.error);
        return std::move(result_);
    }
    if (cut == Cut::kNone ||
        (cut == Cut::kInterrupt && replied_ && result_.status == ExecutionStatus::kOk)) {
        // Code that finished in the instant of the interrupt did finish.
        return std::move(result_);
    }
    if (!result_.error.has_value()) {
        result_.error.emplace();
    }
    result_.exit_code.reset();
    switch (cut) {
        case Cut::kWallTimeout:
            result_.status = ExecutionStatus::kTimeout;
            result_.error->kind = "wall_timeout";
            break;
        case Cut::kCpuTimeout:
            result_.status = ExecutionStatus::kTimeout;
            result_.error->kind = "cpu_timeout";
            break;
        case Cut::kOutputLimit:
            result_.status = ExecutionStatus::kOutputLimit;
            result_.error->kind = "output_limit";
            break;
        case Cut::kInterrupt:
        case Cut::kNone:
            result_.status = ExecutionStatus::kInterrupted;
            result_.error->kind = "interrupt";
            break;
    }
    result_.error->hint = hint_of(*result_.error);
    return std::move(result_);
}

ExecutionResult ExecutionRecorder::finish_refused(const Error& why) {
    close_texts();
    const bool full = why.code() == ErrorCode::kLimitExceeded;
    result_.status = full ? ExecutionStatus::kDiskFull : ExecutionStatus::kError;
    ExecutionError error;
    error.kind = full ? "disk_full" : "files";
    error.name = "FilesNotWritten";
    error.message = why.message();
    error.hint = hint_of(error);
    result_.error = std::move(error);
    return std::move(result_);
}

ExecutionResult ExecutionRecorder::finish_dead(const Death& death) {
    close_texts();
    result_.exit_code.reset();
    result_.state_kept = false;
    result_.death = death;
    ExecutionError error;
    error.name = "KernelDied";
    error.message = describe(death);
    error.kind = "dead";
    result_.status = ExecutionStatus::kDead;
    error.hint = hint_of(error);  // what a deadline's death has in common with every other
    switch (death.kind) {
        case Death::Kind::kOom:
            result_.status = ExecutionStatus::kOom;
            error.kind = "oom";
            error.hint = hint_of(error);
            break;
        case Death::Kind::kWallTimeout:
            result_.status = ExecutionStatus::kTimeout;
            error.kind = "wall_timeout";
            break;
        case Death::Kind::kCpuTimeout:
            result_.status = ExecutionStatus::kTimeout;
            error.kind = "cpu_timeout";
            break;
        case Death::Kind::kOutputLimit:
            result_.status = ExecutionStatus::kOutputLimit;
            error.kind = "output_limit";
            break;
        default:
            break;
    }
    result_.outputs.push_back(
        {{"output_type", "error"},
         {"ename", error.name},
         {"evalue", error.message},
         {"traceback", json::array({error.name + ": " + error.message})}});
    result_.error = std::move(error);
    return std::move(result_);
}

}  // namespace cellkeep::session
