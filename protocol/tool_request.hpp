// SPDX-License-Identifier: Apache-2.0
//
// Tool calls on the stdin channel of the kernel link: the code of an execution calls a tool that
// the execution's caller lends, or one of the server's operator. Cellkeep's own messages; no
// Jupyter client sees them. Each reply has its request as its parent. Code asks one thing at a
// time: a new request means that it no longer waits for the answer to an earlier one.
#pragma once

#include <string_view>

namespace cellkeep::protocol {

/// Content {"name": the tool's, "arguments": an object}.
inline constexpr std::string_view kToolRequest = "cellkeep_tool_request";
/// Content {"status": "ok", "result": any JSON}, or {"status": "ok", "file": {"path": in the
/// workspace, "bytes", "sha256", "media_type": "text/plain" or "application/json"}} for a longer
/// one of the operator's tools, or {"status": "error", "reason": a word of kToolRefused…,
/// "message": one or two sentences}.
inline constexpr std::string_view kToolReply = "cellkeep_tool_reply";

/// Content {}.
inline constexpr std::string_view kToolListRequest = "cellkeep_tool_list_request";
/// Content {"tools": [{"name", "description", "input_schema"}, …]}.
inline constexpr std::string_view kToolListReply = "cellkeep_tool_list_reply";

inline constexpr std::string_view kToolRefusedNotLent = "not_lent";    // none is, or not this one
inline constexpr std::string_view kToolRefusedTooLarge = "too_large";  // arguments, result
inline constexpr std::string_view kToolRefusedMalformed = "malformed";
inline constexpr std::string_view kToolRefusedTooMany = "too_many_calls";
inline constexpr std::string_view kToolRefusedFailed = "failed";  // the tool says why
// Of the operator's tools only.
inline constexpr std::string_view kToolRefusedDenied = "denied";  // by a rule, or by a person
inline constexpr std::string_view kToolRefusedNotApproved = "not_approved";  // nobody said yes
inline constexpr std::string_view kToolRefusedUnavailable = "unavailable";   // its server is
inline constexpr std::string_view kToolRefusedTimeout = "timeout";

}  // namespace cellkeep::protocol
