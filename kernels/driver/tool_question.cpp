// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/tool_question.hpp"

#include "kernels/driver/event_fields.hpp"
#include "protocol/json.hpp"
#include "protocol/tool_request.hpp"

#include <algorithm>

namespace cellkeep::kernels::driver {

using nlohmann::json;

namespace {

constexpr std::string_view kCallEvent = "tool";
constexpr std::string_view kListEvent = "tools";

}  // namespace

bool is_tool_question(std::string_view event) {
    return event == kCallEvent || event == kListEvent;
}

Result<ToolQuestion> read_tool_question(const json& event) {
    if (text_field(event, "event") == kListEvent) {
        return ToolQuestion{kListEvent, protocol::kToolListRequest, protocol::kToolListReply, "{}"};
    }
    const auto arguments = event.find("arguments");
    const std::string name = text_field(event, "name");
    if (name.empty() || arguments == event.end() || !arguments->is_object()) {
        return Error(ErrorCode::kProtocol, "a call of a tool without its name or its arguments");
    }
    return ToolQuestion{
        kCallEvent,
        protocol::kToolRequest,
        protocol::kToolReply,
        protocol::dump_json({{"name", name}, {"arguments", *arguments}})};
}

std::string answer_tool_question(const ToolQuestion& question, std::string_view content) {
    std::string line = R"({"request":")" + std::string(question.request) + '"';
    const std::size_t members = content.find_first_not_of(" \t\r\n", content.find('{') + 1);
    if (members != std::string_view::npos && content[members] != '}') {
        line += ',';
    }
    line += content.substr(std::min(members, content.size()));
    // Between the values of JSON a line may end; within a text it cannot (RFC 8259, section 7).
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return line;
}

std::string refuse_tool_question(
    const ToolQuestion& question, std::string_view reason, std::string_view message) {
    return protocol::dump_json(
        {{"request", question.request},
         {"status", "error"},
         {"reason", reason},
         {"message", message}});
}

}  // namespace cellkeep::kernels::driver
