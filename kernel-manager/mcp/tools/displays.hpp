// SPDX-License-Identifier: Apache-2.0
//
// The displays and the result of an execution, as a model can take them: pictures as image content,
// everything else as text, and by name and size what is too large. Pure.
#pragma once

#include "kernel-manager/execution/notebook_output.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::mcp {

struct ShownDisplays {
    nlohmann::json pictures = nlohmann::json::array();  // image content
    nlohmann::json displays = nlohmann::json::array();  // {type, bytes} or {type, text} each
    std::string text;                                   // the same for people, line by line
    std::optional<std::string> result;                  // text of the last expression
};
ShownDisplays show_displays(const std::vector<session::NotebookOutput>& outputs);

}  // namespace cellkeep::mcp
