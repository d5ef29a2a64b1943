// SPDX-License-Identifier: Apache-2.0
//
// One table of a TOML file changed, and nothing else: the rest stays to the byte. What comes out is
// read again and compared before anybody gets it. Pure.
#pragma once

#include "kernel-manager/cli/mcp/setup/client_program.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <string_view>

namespace cellkeep::cli {

/// [container.name] at the end of the text, in place of one that was there. kInvalidArgument: the
/// text is no TOML, or has the table written in another way.
Result<std::string> set_toml_table(
    const std::string& text, std::string_view container, const ServerEntry& entry);
/// With the tables below it. kNotFound if it is not there.
Result<std::string> remove_toml_table(
    const std::string& text, std::string_view container, const std::string& name);

}  // namespace cellkeep::cli
