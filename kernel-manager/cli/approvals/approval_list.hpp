// SPDX-License-Identifier: Apache-2.0
//
// The calls of tools that wait for a person, as a terminal shows them. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace cellkeep::cli {

/// Of a description, and of arguments, what is shown.
inline constexpr std::size_t kShownTextBytesMax = 2000;

/// answer: that of GET /v1/approvals. What a guest or a tool's server wrote stays in its line and
/// sends nothing to the terminal but characters.
std::string approval_list(const nlohmann::json& answer);

/// On one line, without control characters, at most kShownTextBytesMax.
std::string terminal_line(std::string_view text);

}  // namespace cellkeep::cli
