// SPDX-License-Identifier: Apache-2.0
//
// Arguments of a tool that its server wants repeated in headers of the HTTP request, so that what
// stands before the server can route by them ("x-mcp-header" in the tool's schema, 2026-07-28). A
// server is not trusted: a schema that is wrong in this is no schema. Pure.
#pragma once

#include "kernel-manager/tools/config/server_entry.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::tools {

struct ParameterHeader {
    std::string name;               // behind Mcp-Param-
    std::vector<std::string> path;  // of the argument: names of members, outermost first
};

/// kProtocol says what is wrong; kLimitExceeded: there are more than kParameterHeadersMax.
Result<std::vector<ParameterHeader>> read_parameter_headers(const nlohmann::json& schema);

/// The headers of a call with these arguments, a JSON object. What is not there, and what is
/// neither text nor a whole number nor true or false, has none. kLimitExceeded: one would have more
/// than kParameterHeaderBytesMax.
Result<NamedTexts> repeat_arguments(
    const std::vector<ParameterHeader>& headers, std::string_view arguments);

}  // namespace cellkeep::tools
