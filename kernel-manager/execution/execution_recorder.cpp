// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_recorder.hpp"

#include "kernel-manager/execution/error_text.hpp"
#include "kernel-manager/execution/exit_code.hpp"
#include "kernel-manager/output/reply_facts.hpp"
#include "protocol/json.hpp"
#include "protocol/json_string.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::session {

namespace {

using nlohmann::json;

using protocol::Member;
using protocol::RawJson;

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

RawJson object_or_empty(RawJson value) {
    return value.is_object() ? std::move(value) : RawJson("{}");
}

RawJson string_or_empty(RawJson value) {
    return value.text().starts_with('"') ? std::move(value) : RawJson("\"\"");
}

MimeBundle bundle_of(const protocol::Message& message) {
    return {
        object_or_empty(message.member(Member::kData)),
        object_or_empty(message.member(Member::kMetadata))};
}

std::string display_id_of(const protocol::Message& message) {
    const RawJson id = message.member(Member::kDisplayId);
    return id.text().size() > limits::kDisplayIdBytesMax ? std::string()
                                                         : protocol::read_json_string(id.text());
}

std::optional<std::int64_t> count_of(const protocol::Message& message) {
    return read_integer(message.member(Member::kExecutionCount).text());
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
      outputs_(output_bytes_max),
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
    if (!message.outline().valid) {
        return;  // the guest's own message is malformed: it is a guest that lies about itself
    }
    if (type == "clear_output") {
        clear_before_next_ = true;
        if (message.member(Member::kWait).text() == "true") {
            return;
        }
    }
    if (std::exchange(clear_before_next_, false)) {
        stdout_.clear();
        stderr_.clear();
        outputs_.clear();
    }
    if (type == "stream") {
        add_stream(message, workspace);
    } else if (type == "update_display_data") {
        update_display(message);
    } else if (type == "error") {
        add_error(message);
    } else if (type == "display_data") {
        add_display(message);
    } else if (type == "execute_result") {
        add_result(message);
    }
}

void ExecutionRecorder::add_stream(
    const protocol::Message& message, const sandbox::Workspace* workspace) {
    const std::string_view content = message.content_json();
    const std::string_view quoted = message.outline().find(Member::kText, content);
    const std::string_view inside = protocol::inside_json_string(quoted);
    const bool is_error = says(message, Member::kName, "stderr");
    // Text without an escape says what it is.
    const bool plain = inside.find('\\') == std::string_view::npos;
    const std::string read = plain ? std::string() : protocol::read_json_string(quoted);
    const std::string_view text = plain ? inside : std::string_view(read);
    (is_error ? stderr_ : stdout_).append(text, workspace);
    outputs_.add_stream(is_error ? "stderr" : "stdout", inside, text.size());
}

void ExecutionRecorder::add_display(const protocol::Message& message) {
    (void)outputs_.add_display(  // what is left out is counted
        bundle_of(message),
        display_id_of(message),
        message.frame().size());
}

void ExecutionRecorder::update_display(const protocol::Message& message) {
    outputs_.update_display(display_id_of(message), bundle_of(message), message.frame().size());
}

void ExecutionRecorder::add_result(const protocol::Message& message) {
    MimeBundle bundle = bundle_of(message);
    if (outputs_.add_result({bundle, count_of(message)}, message.frame().size())) {
        result_.result = std::move(bundle.data);
    }
}

void ExecutionRecorder::add_error(const protocol::Message& message) {
    GuestError said = read_guest_error(message);
    // The list as it came, if there is nothing in it but strings.
    RawJson lines = message.outline().plain_traceback
                        ? message.member(Member::kTraceback)
                        : RawJson(protocol::dump_json(said.traceback));
    ErrorOutput output{
        string_or_empty(message.member(Member::kEname)),
        string_or_empty(message.member(Member::kEvalue)),
        std::move(lines)};
    if (!outputs_.add_error(std::move(output), message.frame().size())) {
        // No room: the error itself must still be reported.
        said.message = "(the error is too long for this answer)";
        said.traceback.clear();
    }
    set_error(std::move(said));
}

void ExecutionRecorder::set_error(GuestError said) {
    ExecutionError error;
    error.kind = "runtime";
    error.name = std::move(said.name);
    error.message = std::move(said.message);
    error.traceback = std::move(said.traceback);
    result_.error = std::move(error);
}

void ExecutionRecorder::on_reply(const protocol::Message& reply) {
    replied_ = true;
    if (!reply.outline().valid) {
        return;  // as in on_output
    }
    if (const auto count = count_of(reply)) {
        result_.execution_count = count;
    }
    const json details = reply_details(reply);
    if (says(reply, Member::kStatus, "ok")) {
        result_.status = ExecutionStatus::kOk;
        result_.exit_code = exit_code_of(details).value_or(0);
        return;
    }
    result_.status = ExecutionStatus::kError;
    result_.exit_code = exit_code_of(details).value_or(1);
    if (!result_.error.has_value()) {
        // A cell that failed without an error message on iopub: the reply has the same fields.
        set_error(read_guest_error(reply));
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

std::size_t ExecutionRecorder::passed_bytes() const {
    return stdout_.total() + stderr_.total() + stdin_text_.size() + outputs_.retained_bytes();
}

ExecutionRecorder::Passed ExecutionRecorder::pass_on() {
    Passed passed;
    passed.result = std::move(result_);
    passed.stdout_text = stdout_.pass_on();
    passed.stderr_text = stderr_.pass_on();
    passed.stdin_text = stdin_text_.substr(std::min(stdin_offset_, stdin_text_.size()));
    passed.outputs = outputs_.pass_on();
    passed.clear_before_next = clear_before_next_;
    return passed;
}

Status ExecutionRecorder::go_on(Passed passed) {
    result_ = std::move(passed.result);
    stdout_.go_on(std::move(passed.stdout_text));
    stderr_.go_on(std::move(passed.stderr_text));
    stdin_text_ = std::move(passed.stdin_text);
    clear_before_next_ = passed.clear_before_next;
    return outputs_.go_on(std::move(passed.outputs));
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
    const std::uint64_t outputs_bytes = outputs_.retained_bytes();
    result_.outputs = outputs_.take();
    // The texts once more as JSON strings, which the answers share (running_execution.hpp).
    result_.retained_bytes =
        outputs_bytes + 2 * (result_.stdout_text.size() + result_.stderr_text.size()) + 4096;
    if (result_.error.has_value()) {
        result_.retained_bytes += result_.error->message.size();
        for (const std::string& line : result_.error->traceback) {
            result_.retained_bytes += sizeof line + line.size();
        }
    }
    if (outputs_.left_out() > 0) {
        const std::uint64_t kept = count_displays(result_.outputs);
        result_.truncated["displays"] = {kept, kept + outputs_.left_out(), "", ""};
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
    result_.outputs.emplace_back(ErrorOutput{
        RawJson(protocol::dump_json(error.name)),
        RawJson(protocol::dump_json(error.message)),
        RawJson(protocol::dump_json(json::array({error.name + ": " + error.message})))});
    result_.error = std::move(error);
    return std::move(result_);
}

}  // namespace cellkeep::session
