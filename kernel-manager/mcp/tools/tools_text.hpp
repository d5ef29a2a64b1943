// SPDX-License-Identifier: Apache-2.0
//
// What tools.json says of each tool, embedded at build time.
#pragma once

#include <string_view>

namespace cellkeep::mcp {

std::string_view tools_text();

}  // namespace cellkeep::mcp
