// SPDX-License-Identifier: Apache-2.0
//
// Sessions, executions and files as the session API shows them.
#pragma once

#include "kernel-manager/session/execution.hpp"
#include "kernel-manager/session/session.hpp"
#include "sandbox/workspace.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::agent {

enum class Outputs { kOmit, kInclude };

nlohmann::json to_json(const session::SessionInfo& info);
/// With kInclude the member "outputs" is the list of nbformat 4 outputs.
nlohmann::json to_json(const session::ExecutionResult& result, Outputs outputs);
nlohmann::json to_json(const sandbox::Entry& entry);

}  // namespace cellkeep::agent
