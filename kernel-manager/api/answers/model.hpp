// SPDX-License-Identifier: Apache-2.0
//
// Sessions, executions and files as the session API shows them.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::api {

/// Every error.kind there is, as openapi.json lists them.
const std::vector<std::string_view>& error_kinds();
/// Returns one of them: "runtime" for every kind that is not in the list.
std::string error_kind(const std::string& kind);

enum class Outputs { kOmit, kInclude };

nlohmann::json to_json(const session::SessionInfo& info);
/// What is ours of an execution's answer and small. Its output is spliced in by
/// execution_model.hpp.
nlohmann::json to_json(const session::ExecutionResult& result);
nlohmann::json to_json(const sandbox::Entry& entry);

}  // namespace cellkeep::api
