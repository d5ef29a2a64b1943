// SPDX-License-Identifier: Apache-2.0
//
// Programs of the operator's that install packages: where they are, and which of this process's
// variables they get. No other thread may change the variables meanwhile.
#pragma once

#include "protocol/support/result.hpp"

#include <string>
#include <vector>

namespace cellkeep::environments {

struct OperatorTool {
    const char* name;      // looked for on $PATH
    const char* variable;  // has its path instead, if it is set
    const char* hint;      // where to get it
};

/// Its path. kUnavailable, with the hint.
Result<std::string> find_tool(const OperatorTool& tool);

/// "NAME=value" of those that tell how to reach an index: proxies and certificates.
std::vector<std::string> variables_of_the_network();

}  // namespace cellkeep::environments
