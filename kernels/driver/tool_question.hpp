// SPDX-License-Identifier: Apache-2.0
//
// What a driver asks of tools (README.md, "Events"), as the kernel's question on the link
// (protocol/tool_request.hpp), and the lines that answer it. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace cellkeep::kernels::driver {

struct ToolQuestion {
    std::string_view request;     // how its answer is called: "tool" or "tools"
    std::string_view type;        // of the message that asks
    std::string_view reply_type;  // of the one that answers
    std::string content;          // the text of a JSON object
};

bool is_tool_question(std::string_view event);
/// kProtocol: a call without a name, or whose arguments are no object.
Result<ToolQuestion> read_tool_question(const nlohmann::json& event);

/// The line of a reply whose content is this, the text of a JSON object. It is not parsed: a result
/// has megabytes.
std::string answer_tool_question(const ToolQuestion& question, std::string_view content);
/// reason: a word of protocol::kToolRefused…, or kNoCaller.
std::string refuse_tool_question(
    const ToolQuestion& question, std::string_view reason, std::string_view message);

/// No cell of this driver's runs that could call a tool.
inline constexpr std::string_view kNoCaller = "no_caller";

}  // namespace cellkeep::kernels::driver
