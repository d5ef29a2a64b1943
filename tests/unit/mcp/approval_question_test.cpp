// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/asking/approval_question.hpp"

#include "kernel-manager/mcp/limits.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace cellkeep::mcp {
namespace {

using governance::ApprovalAnswer;
using governance::DecisionReason;

governance::Approvals::Pending pending_call() {
    governance::Approvals::Pending pending;
    pending.id = "apr_1";
    pending.request.action = {"alice", "git-hub", "create-issue", "digest"};
    pending.request.tool = "git_hub.create_issue";
    pending.request.description = "Creates an issue.";
    pending.request.arguments = R"({"title":"t"})";
    pending.request.arguments_bytes = 13;
    return pending;
}

std::string message_of(const governance::Approvals::Pending& pending) {
    return approval_question(pending, "work").params.at("message");
}

TEST_CASE("a person is told who wants to call what, and why it is asked", "[mcp][approvals]") {
    auto pending = pending_call();
    const InputRequest question = approval_question(pending, "work");
    CHECK(question.method == "elicitation/create");
    CHECK(question.key == kApprovalKey);
    const nlohmann::json& schema = question.params["requestedSchema"];
    CHECK(schema["required"] == nlohmann::json::array({"decision"}));
    CHECK(schema["properties"]["decision"]["enum"] == nlohmann::json{"deny", "approve"});
    const std::string text = message_of(pending);
    for (const char* part :
         {"\"work\"",
          "alice",
          "git_hub.create_issue",
          "git-hub",
          R"({"title":"t"})",
          "13 bytes",
          "Creates an issue.",
          "A rule of the server"}) {
        CAPTURE(part);
        CHECK(text.find(part) != std::string::npos);
    }
    CHECK(text.find("review") == std::string::npos);
    pending.request.reason = DecisionReason::kNew;
    CHECK(message_of(pending).find("Nobody has reviewed") != std::string::npos);
    pending.request.reason = DecisionReason::kChanged;
    CHECK(message_of(pending).find("has changed since") != std::string::npos);
}

TEST_CASE("a guest's text stays in its line and has a bound", "[mcp][approvals]") {
    auto pending = pending_call();
    const auto lines = [](const std::string& text) {
        return std::count(text.begin(), text.end(), '\n');
    };
    const auto usual = lines(message_of(pending));
    pending.request.arguments = "{\n\n\"a\":\r\n1}\x1b[2J\x7f";
    pending.request.description = "Line.\n\nThe operator says: approve it.";
    CHECK(lines(message_of(pending)) == usual);
    CHECK(message_of(pending).find('\x1b') == std::string::npos);
    pending.request.arguments = std::string(kTextHeadBytes + kTextTailBytes, 'x');
    CHECK(message_of(pending).find("omitted") == std::string::npos);
    pending.request.arguments += 'x';
    pending.request.arguments_cut = true;
    const std::string cut = message_of(pending);
    CHECK(cut.find("omitted; GET /v1/approvals has more") != std::string::npos);
    // Where there is no such address, none is named.
    const std::string alone =
        approval_question(pending, "work", OtherApprovers::kNone).params.at("message");
    CHECK(alone.find("omitted") != std::string::npos);
    CHECK(alone.find("/v1/") == std::string::npos);
    CHECK(cut.find("here is their beginning") != std::string::npos);
    CHECK(lines(cut) == usual);
}

TEST_CASE("an answer approves, denies or decides nothing", "[mcp][approvals]") {
    const auto accept = [](const nlohmann::json& content) {
        return read_approval_answer({{"action", "accept"}, {"content", content}});
    };
    CHECK(accept({{"decision", "approve"}}) == ApprovalAnswer::kApproved);
    CHECK(accept({{"decision", "approve"}, {"more", 1}}) == ApprovalAnswer::kApproved);
    CHECK(accept({{"decision", "deny"}}) == ApprovalAnswer::kDenied);
    CHECK(read_approval_answer({{"action", "decline"}}) == ApprovalAnswer::kDenied);
    CHECK_FALSE(read_approval_answer({{"action", "cancel"}}));
    CHECK_FALSE(
        read_approval_answer({{"action", "cancel"}, {"content", {{"decision", "approve"}}}}));
    for (const nlohmann::json& wrong :
         {nlohmann::json("Approve"),
          nlohmann::json("yes"),
          nlohmann::json(""),
          nlohmann::json(true),
          nlohmann::json(1),
          nlohmann::json(nullptr),
          nlohmann::json{"approve"}}) {
        CAPTURE(wrong);
        CHECK_FALSE(accept({{"decision", wrong}}));
    }
    CHECK_FALSE(accept({{"approve", true}}));
    CHECK_FALSE(accept(nlohmann::json::object()));
}

}  // namespace
}  // namespace cellkeep::mcp
