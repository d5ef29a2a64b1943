// SPDX-License-Identifier: Apache-2.0
//
// Values that a client may offer while its user fills in an argument of a prompt or of a resource's
// URI: names of sessions, paths of their files, ids of their runs. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/mcp/tools/session_names.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::mcp {

/// The parameters of completion/complete, checked.
struct CompletionOrder {
    bool of_prompt = false;  // else of a resource template
    std::string ref;         // the prompt's name or the template
    std::string argument;
    std::string value;                                  // as far as it has been typed
    nlohmann::json context = nlohmann::json::object();  // other arguments, by name
};
/// kInvalidArgument.
Result<CompletionOrder> read_completion(const nlohmann::json& params);

/// {"values", "total", "hasMore"}: what begins so, up to kCompletionsMax; none if the argument has
/// none to offer. kNotFound: there is no such prompt, template or argument.
Result<nlohmann::json> complete(
    const SessionNames& names, const http::Principal& principal, const CompletionOrder& order);
/// The same shape of any values.
nlohmann::json completion_of(std::vector<std::string> values);

}  // namespace cellkeep::mcp
