// SPDX-License-Identifier: Apache-2.0
//
// What the description of run_code says of the tools that code may call: their signatures if they
// are few, so that a model need not look for them; else how to look. Names of arguments come from
// tool servers: what is no plain word is left out. Pure.
#pragma once

#include <string>
#include <string_view>

namespace cellkeep::mcp {

/// listed: as session::OperatorTools::list() gives it. Begins with a space; "" if there are none.
/// At most kStubsBytesMax; of a list of more than kStubsSourceBytesMax it says only how to look.
std::string describe_tools(std::string_view listed);

}  // namespace cellkeep::mcp
