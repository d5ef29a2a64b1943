// SPDX-License-Identifier: Apache-2.0
//
// What a client's person is asked about a call of a tool that waits for a word, and what the answer
// decides. Pure.
#pragma once

#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/mcp/asking/ask.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace cellkeep::mcp {

/// Who else may say yes, besides the client's person.
enum class OtherApprovers {
    kNone,
    kApi,  // administrators, over /v1/approvals
};

/// Its key among the questions of a round.
inline constexpr const char* kApprovalKey = "approval";

/// A form with one choice. session: what the client calls it. Long texts are shown with their
/// beginnings and ends.
InputRequest approval_question(
    const governance::Approvals::Pending& pending,
    const std::string& session,
    OtherApprovers others = OtherApprovers::kApi);

/// Of an answer that find_wrong_answer() finds nothing wrong with. nullopt: it decides nothing, as
/// a form that was closed does.
std::optional<governance::ApprovalAnswer> read_approval_answer(const nlohmann::json& answer);

}  // namespace cellkeep::mcp
