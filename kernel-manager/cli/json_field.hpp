// SPDX-License-Identifier: Apache-2.0
//
// Reads fields of a server's answer, whatever that answer is: nlohmann's own value() throws when a
// field has another type than the one wanted. Thread-safe: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::cli {

/// The string at this name; the fallback if there is none or it is something else.
std::string text_field(
    const nlohmann::json& object, const char* name, const std::string& fallback = {});

/// The same for a number.
double number_field(const nlohmann::json& object, const char* name, double fallback);

/// The array at this name; an empty one if there is none or it is something else.
const nlohmann::json& array_field(const nlohmann::json& object, const char* name);

}  // namespace cellkeep::cli
