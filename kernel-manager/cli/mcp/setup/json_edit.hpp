// SPDX-License-Identifier: Apache-2.0
//
// One member of one object of a JSON file changed, and nothing else: spaces, comments and the order
// of the rest stay to the byte. What comes out is read again and compared before anybody gets it.
// Pure.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace cellkeep::cli {

/// Sets text[container][name]; makes the object "container" at the top if there is none, and the
/// whole for a blank text. kInvalidArgument: the text is no JSON object (comments are fine), the
/// container is something else, or the change would touch more than the member.
Result<std::string> set_json_member(
    const std::string& text,
    std::string_view container,
    const std::string& name,
    const nlohmann::ordered_json& value);
/// kNotFound if it is not there. A container that becomes empty stays.
Result<std::string> remove_json_member(
    const std::string& text, std::string_view container, const std::string& name);
/// An empty container at the top, too.
Result<std::string> remove_empty_json_object(const std::string& text, std::string_view container);

}  // namespace cellkeep::cli
