// SPDX-License-Identifier: Apache-2.0
//
// Which requests a kernel knows, and their content made complete before xeus sees it: defaults of
// the messaging specification filled in, nulls removed, wrong types refused. xeus reads fields by
// nlohmann's value(), which throws on a null and has other defaults. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace cellkeep::kernels {

enum class RequestKind {
    kUnknown,
    kReplied,  // xeus answers it
    kCommInfo,
    kComm,   // comm_open, comm_msg, comm_close: no reply
    kAdopt,  // protocol::kAdoptRequest
    kDebug,
    kCheckpoint,  // protocol::kCheckpointRequest
};

/// The Debug Adapter Protocol in Jupyter's envelope (messaging specification, "Debug request").
inline constexpr std::string_view kDebugRequest = "debug_request";

RequestKind find_shell_request(std::string_view type);
/// kReplied, kAdopt, kCheckpoint, kDebug or kUnknown.
RequestKind find_control_request(std::string_view type);

/// "execute_request" -> "execute_reply".
std::string reply_type(std::string_view request_type);

/// kInvalidArgument names the field.
Status complete_content(std::string_view request_type, nlohmann::json& content);

}  // namespace cellkeep::kernels
