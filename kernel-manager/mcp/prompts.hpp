// SPDX-License-Identifier: Apache-2.0
//
// A few prompts that people begin with: what a client shows as commands of its own. Pure.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::mcp {

/// {"prompts": […]}, by name.
nlohmann::json list_prompts();
/// Whether there is a prompt of this name with this argument.
bool has_prompt_argument(const std::string& prompt, const std::string& argument);
/// {"description", "messages"}: the prompt with these arguments, an object of texts. kNotFound:
/// there is no such prompt; kInvalidArgument: an argument is missing, unknown, no text, or longer
/// than kPromptArgumentBytesMax.
Result<nlohmann::json> get_prompt(const std::string& name, const nlohmann::json& arguments);

}  // namespace cellkeep::mcp
