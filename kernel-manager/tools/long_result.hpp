// SPDX-License-Identifier: Apache-2.0
//
// A result that is too long for the reply to the code: it becomes a file of the session's
// workspace, and the reply names the file.
#pragma once

#include "kernel-manager/execution/operator_tools.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::tools {

/// response: one that read_call_result() took for a result. files may be null: there is no place.
/// What cannot be kept is a refusal that says why. Reads and writes megabytes: for a work thread.
session::ToolOutcome keep_long_result(
    session::ToolResultFiles* files,
    const std::string& execution_id,
    const nlohmann::json& response,
    bool wraps_result);

}  // namespace cellkeep::tools
