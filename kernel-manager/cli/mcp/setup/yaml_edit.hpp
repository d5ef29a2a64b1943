// SPDX-License-Identifier: Apache-2.0
//
// One entry of a mapping at the top of a YAML file changed, line by line, and nothing else. It
// understands block style with blanks, as programs write it, and refuses everything else. Pure.
#pragma once

#include "kernel-manager/cli/mcp/setup/client_program.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <string_view>

namespace cellkeep::cli {

/// The entry as the container's first, in place of one that was there. kInvalidArgument: the file
/// is written in another way than this understands.
Result<std::string> set_yaml_block(
    const std::string& text, std::string_view container, const ServerEntry& entry);
/// kNotFound if it is not there.
Result<std::string> remove_yaml_block(
    const std::string& text, std::string_view container, const std::string& name);

}  // namespace cellkeep::cli
