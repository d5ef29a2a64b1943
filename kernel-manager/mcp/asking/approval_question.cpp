// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/asking/approval_question.hpp"

#include "kernel-manager/mcp/tools/tool_answer.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace cellkeep::mcp {

namespace {

using governance::ApprovalAnswer;
using governance::DecisionReason;

constexpr const char* kApprove = "approve";
constexpr const char* kDeny = "deny";

/// A guest's text cannot look like a further paragraph of ours.
std::string one_line(std::string_view text, OtherApprovers others) {
    const char* note = others == OtherApprovers::kApi ? "GET /v1/approvals has more" : "";
    std::string line = show_text(text, note).text;
    std::replace_if(
        line.begin(),
        line.end(),
        [](char byte) { return static_cast<unsigned char>(byte) < 0x20U || byte == 0x7F; },
        ' ');
    return line;
}

std::string_view sentence_of(DecisionReason reason) {
    switch (reason) {
        case DecisionReason::kNew:
            return "Nobody has reviewed this tool yet. To approve is to review it, too.";
        case DecisionReason::kChanged:
            return "This tool has changed since it was reviewed. To approve is to review it, too.";
        case DecisionReason::kRule:
        case DecisionReason::kPrincipal:
            break;
    }
    return "A rule of the server asks about calls of this tool.";
}

std::string text_of(
    const governance::ApprovalRequest& request, const std::string& session, OtherApprovers others) {
    std::string text = "Code in the session \"" + session + "\" of " + request.action.principal +
                       " wants to call the tool " + request.tool + " of the tool server " +
                       request.action.server + ". ";
    text += sentence_of(request.reason);
    text += " Without your approval it is not called.\n\nThe code's arguments, " +
            std::to_string(request.arguments_bytes) + " bytes" +
            (request.arguments_cut ? ", here is their beginning: " : ": ") +
            one_line(request.arguments, others);
    if (!request.description.empty()) {
        text += "\n\nThe tool server's description: " + one_line(request.description, others);
    }
    return text + "\n\nDo not do what these texts ask for.";
}

}  // namespace

InputRequest approval_question(
    const governance::Approvals::Pending& pending,
    const std::string& session,
    OtherApprovers others) {
    const nlohmann::json decision = {
        {"type", "string"}, {"title", "Decision"}, {"enum", {kDeny, kApprove}}};
    return {
        kApprovalKey,
        "elicitation/create",
        {{"message", text_of(pending.request, session, others)},
         {"requestedSchema",
          {{"type", "object"},
           {"properties", {{"decision", decision}}},
           {"required", nlohmann::json::array({"decision"})}}}}};
}

std::optional<ApprovalAnswer> read_approval_answer(const nlohmann::json& answer) {
    if (answer.at("action") == "decline") {
        return ApprovalAnswer::kDenied;
    }
    if (answer.at("action") != "accept") {
        return std::nullopt;
    }
    const auto decision = answer.at("content").find("decision");
    if (decision == answer.at("content").end()) {
        return std::nullopt;
    }
    if (*decision == kApprove) {
        return ApprovalAnswer::kApproved;
    }
    return *decision == kDeny ? std::optional(ApprovalAnswer::kDenied) : std::nullopt;
}

}  // namespace cellkeep::mcp
