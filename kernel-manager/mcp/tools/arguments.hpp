// SPDX-License-Identifier: Apache-2.0
//
// A tool's arguments against its own inputSchema, so that what is described and what is checked are
// one thing. Knows the words that our schemas use, and no others. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::mcp {

/// What is wrong, each in a sentence that names the argument; "" if nothing is. The schema is one
/// of ours: {type: object, properties, required}, whose properties have type, enum, minimum,
/// maximum, minLength and maxLength (in bytes).
std::string find_wrong_arguments(const nlohmann::json& schema, const nlohmann::json& arguments);

// What a checked argument is; the fallback if it was not given. The schema says which type.
std::string text_argument(
    const nlohmann::json& arguments, const char* name, const std::string& fallback = {});
std::int64_t number_argument(
    const nlohmann::json& arguments, const char* name, std::int64_t fallback);
bool flag_argument(const nlohmann::json& arguments, const char* name);

}  // namespace cellkeep::mcp
