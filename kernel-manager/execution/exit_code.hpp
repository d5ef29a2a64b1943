// SPDX-License-Identifier: Apache-2.0
//
// The exit code of a cell, of languages whose cells have one (a shell's). Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>

namespace cellkeep::session {

/// metadata.cellkeep.exit_code of an execute_reply; nothing if it is no number from 0 to 255.
std::optional<int> exit_code_of(const nlohmann::json& reply_metadata);

}  // namespace cellkeep::session
