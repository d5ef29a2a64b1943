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

}  // namespace

std::string no_tool_lent() {
    return refusal_content(
        protocol::kToolRefusedNotLent, "The caller of this cell has lent no tools to it.");
}

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

std::string ToolCalls::list() const {
    auto tools = nlohmann::json::array();
    for (const LentTool& tool : tools_) {
        tools.push_back(
            {{"name", tool.name},
             {"description", tool.description},
             {"input_schema", tool.input_schema}});
    }
    return protocol::dump_json({{"tools", std::move(tools)}});
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
    const LentTool* tool = find(asked_name(request));
    if (tool == nullptr) {
        reply(refusal_content(
            protocol::kToolRefusedNotLent, "No tool of this name was lent to this execution."));
        return std::nullopt;
    }
    if (begun_ == limits::kToolCallsMax) {
        reply(refusal_content(
            protocol::kToolRefusedTooMany,
            "An execution may call tools " + std::to_string(limits::kToolCallsMax) + " times."));
        return std::nullopt;
    }
    ++begun_;
    waiting_ = Call{std::string(kToolIdPrefix) + std::to_string(begun_), tool->name, arguments};
    reply_ = std::move(reply);
    return waiting_;
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
    waiting_.reset();
    reply_ = nullptr;
}

}  // namespace cellkeep::session
