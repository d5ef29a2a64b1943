// SPDX-License-Identifier: Apache-2.0
//
// Tools that a caller lends to an execution, and what it answers to a call. Pure.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/execution/tool_calls.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace cellkeep::api {

/// The member "tools" of a body.
void read_tools(ObjectReader& parent, std::vector<session::LentTool>& tools, FieldErrors& errors);

/// Fills errors; the answer counts only if there are none.
session::ToolAnswer parse_tool_answer(const nlohmann::json& body, FieldErrors& errors);

}  // namespace cellkeep::api
