// SPDX-License-Identifier: Apache-2.0
//
// What a server says of a call, as what the code gets: the structured result, else the text, else
// the content as it came. Pure.
#pragma once

#include "kernel-manager/execution/operator_tools.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace cellkeep::tools {

/// A failure of a kind of protocol/tool_request.hpp; the message is cut at kFailureBytesMax.
session::ToolOutcome refused_call(std::string_view reason, std::string_view message);

/// response: a JSON-RPC response to tools/call.
session::ToolOutcome read_call_result(const nlohmann::json& response, bool wraps_result);

/// What the code gets of a response that read_call_result() takes for a result. wraps_result: as
/// its tool's.
nlohmann::json result_value(const nlohmann::json& response, bool wraps_result);

/// Of a request that has no response.
session::ToolOutcome failed_call(const Error& why);

}  // namespace cellkeep::tools
