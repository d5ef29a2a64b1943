// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/tool_calls.hpp"

#include "protocol/json.hpp"
#include "protocol/json_string.hpp"
#include "protocol/limits.hpp"
#include "protocol/tool_request.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace cellkeep::session {

namespace {

using protocol::Member;

constexpr std::string_view kToolIdPrefix = "tcl_";

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_word(std::string_view word) {
    return !word.empty() && is_letter(word.front()) &&
           std::all_of(word.begin(), word.end(), [](char c) {
               return is_letter(c) || (c >= '0' && c <= '9');
           });
}

std::string refusal_content(std::string_view reason, const std::string& message) {
    return protocol::dump_json({{"status", "error"}, {"reason", reason}, {"message", message}});
}

/// "" if it is none or too long to be the name of a tool.
std::string asked_name(const protocol::Message& request) {
    const protocol::RawJson name = request.member(Member::kName);
    // Each character may be an escape of six bytes.
    if (!name.text().starts_with('"') || name.text().size() > 2 + limits::kToolNameBytesMax * 6) {
        return {};
    }
    return protocol::read_json_string(name.text());
}

/// The number of a call's id, or 0.
std::size_t number_of(std::string_view id) {
    if (!id.starts_with(kToolIdPrefix)) {
        return 0;
    }
    id.remove_prefix(kToolIdPrefix.size());
    std::size_t number = 0;
    const auto [end, failed] = std::from_chars(id.data(), id.data() + id.size(), number);
    const bool is_number = failed == std::errc() && end == id.data() + id.size();
    return is_number && !id.starts_with('0') ? number : 0;
}

/// Elements of a JSON array.
std::string text_of(const std::vector<LentTool>& tools) {
    std::string text;
    for (const LentTool& tool : tools) {
        text += text.empty() ? "" : ",";
        text += protocol::dump_json(
            {{"name", tool.name},
             {"description", tool.description},
             {"input_schema", tool.input_schema}});
    }
    return text;
}

}  // namespace

bool is_tool_name(std::string_view name) {
    if (name.size() > limits::kToolNameBytesMax) {
        return false;
    }
    while (true) {
        const std::size_t dot = name.find('.');
        if (!is_word(name.substr(0, dot))) {
            return false;
        }
        if (dot == std::string_view::npos) {
            return true;
        }
        name.remove_prefix(dot + 1);
    }
}

std::string ToolCalls::list() {
    if (lists_ == limits::kToolListsMax) {
        return refusal_content(
            protocol::kToolRefusedTooMany,
            "An execution may ask for the list of its tools " +
                std::to_string(limits::kToolListsMax) + " times.");
    }
    ++lists_;
    if (!lent_text_) {
        lent_text_ = text_of(tools_);
    }
    std::string text = R"({"tools":[)" + *lent_text_;
    if (operator_.tools) {
        const std::string others = operator_.tools->list(operator_.caller);
        text += lent_text_->empty() || others.empty() ? "" : ",";
        text += others;
    }
    return text + "]}";
}

const LentTool* ToolCalls::find(std::string_view name) const {
    const auto found = std::find_if(
        tools_.begin(), tools_.end(), [&](const LentTool& tool) { return tool.name == name; });
    return found == tools_.end() ? nullptr : &*found;
}

std::optional<ToolCalls::Call> ToolCalls::begin(const protocol::Message& request, Reply reply) {
    give_up();
    if (request.frame().size() > limits::kToolRequestBytesMax) {
        reply(refusal_content(
            protocol::kToolRefusedTooLarge,
            "The arguments of one call may have at most " +
                std::to_string(limits::kToolRequestBytesMax) +
                " bytes. Write a file and pass its name."));
        return std::nullopt;
    }
    const protocol::RawJson arguments = request.member(Member::kArguments);
    if (!arguments.is_object()) {
        reply(refusal_content(protocol::kToolRefusedMalformed, "The arguments are no object."));
        return std::nullopt;
    }
    const std::string name = asked_name(request);
    const bool is_lent = find(name) != nullptr;
    if (!is_lent && !(operator_.tools && operator_.tools->offers(operator_.caller, name))) {
        reply(refusal_content(
            protocol::kToolRefusedNotLent,
            (name.empty() ? "There is no tool of this name." : "There is no tool " + name + ".") +
                std::string(" tools.list() has the names of those there are.")));
        return std::nullopt;
    }
    if (begun_ == limits::kToolCallsMax) {
        reply(refusal_content(
            protocol::kToolRefusedTooMany,
            "An execution may call tools " + std::to_string(limits::kToolCallsMax) + " times."));
        return std::nullopt;
    }
    ++begun_;
    waiting_ =
        Call{std::string(kToolIdPrefix) + std::to_string(begun_), name, arguments, !is_lent, {}};
    reply_ = std::move(reply);
    if (!is_lent) {
        call_operators(name, arguments);
    }
    return waiting_;
}

/// The hooks are gone when this object is: it holds what keeps them.
void ToolCalls::call_operators(const std::string& name, const protocol::RawJson& arguments) {
    operators_call_ = operator_.tools->call(
        operator_.caller,
        name,
        arguments,
        {.on_held = [this](const std::string& approval) { on_held(approval); },
         .on_approved = [this] { on_held(""); },
         .on_done = [this](const ToolOutcome& outcome) { on_done(outcome); },
         .result_files = operator_.result_files});
}

/// approval is empty: it has been given.
void ToolCalls::on_held(const std::string& approval) {
    end_hold();
    waiting_->approval = approval;
    if (!approval.empty()) {
        held_since_ = std::chrono::steady_clock::now();
    }
    if (watch_.on_held) {
        watch_.on_held(*waiting_);
    }
}

void ToolCalls::end_hold() {
    held_ = held_for(std::chrono::steady_clock::now());
    held_since_.reset();
}

std::chrono::nanoseconds ToolCalls::held_for(std::chrono::steady_clock::time_point now) const {
    const auto more = held_since_ ? now - *held_since_ : std::chrono::nanoseconds(0);
    return std::min<std::chrono::nanoseconds>(held_ + more, kHeldTimeMax);
}

void ToolCalls::on_done(const ToolOutcome& outcome) {
    end_hold();
    const Call call = *std::exchange(waiting_, std::nullopt);
    const Reply reply = std::exchange(reply_, nullptr);
    const auto kept = std::exchange(operators_call_, nullptr);  // it is what calls this
    const auto tell = watch_.on_done;  // the reply may end the run, and this with it
    reply(outcome.content);
    if (tell) {
        tell(call, outcome);
    }
}

Result<std::string> ToolCalls::answer(const std::string& id, const ToolAnswer& answer) {
    const std::size_t number = number_of(id);
    if (number == 0 || number > begun_) {
        return Error(ErrorCode::kNotFound, "there is no tool call " + id);
    }
    if (!waiting_ || waiting_->id != id) {
        return Error(
            ErrorCode::kConflict,
            "the tool call " + id + " has been answered, or the code no longer waits for it");
    }
    if (waiting_->is_operators) {
        return Error(
            ErrorCode::kConflict, "the tool call " + id + " is answered by a tool of this server");
    }
    std::string content = answer.error
                              ? refusal_content(protocol::kToolRefusedFailed, *answer.error)
                              : protocol::dump_json({{"status", "ok"}, {"result", answer.result}});
    if (content.size() > limits::kToolResultBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "the answer of a tool may have at most " + std::to_string(limits::kToolResultBytesMax) +
                " bytes",
            "Put it into a file of the session, and answer with its name.");
    }
    const Reply reply = std::exchange(reply_, nullptr);
    waiting_.reset();
    reply(content);
    return content;
}

void ToolCalls::give_up() {
    end_hold();
    waiting_.reset();
    reply_ = nullptr;
    operators_call_ = nullptr;
}

}  // namespace cellkeep::session
