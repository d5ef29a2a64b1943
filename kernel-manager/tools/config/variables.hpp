// SPDX-License-Identifier: Apache-2.0
//
// ${NAME} and ${NAME:-default} in the operator's file, and the variables that a tool server's
// program gets: never the whole environment of this process, which has tokens. Pure but for what
// the caller hands in.
#pragma once

#include "protocol/support/result.hpp"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::tools {

/// What other MCP clients pass on, too.
inline constexpr std::array<std::string_view, 9> kInheritedVariables = {
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"};

/// kInvalidArgument: a variable that is not set and has no default, or a brace that is not closed.
/// The message has the variable's name.
Result<std::string> replace_variables(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string& name)>& find);

}  // namespace cellkeep::tools
