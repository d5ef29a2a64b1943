// SPDX-License-Identifier: Apache-2.0
//
// Reading the members of a driver's events (README.md, "Events"). A member that is missing or of
// another type reads as the default, so that a driver may leave out what is optional.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace cellkeep::kernels::driver {

/// The member as text, or fallback if it is none.
std::string text_field(const nlohmann::json& object, const char* name, std::string fallback = {});
/// The member as an object, or an empty one.
nlohmann::json object_field(const nlohmann::json& object, const char* name);
/// The member as a list, or an empty one.
nlohmann::json list_field(const nlohmann::json& object, const char* name);
/// The member if it is an integer, else fallback.
nlohmann::json integer_field(
    const nlohmann::json& object, const char* name, const nlohmann::json& fallback);
/// Whether the member is true.
bool flag_field(const nlohmann::json& object, const char* name);

/// Whether there is a done event and its status is not error.
bool is_ok(const std::optional<nlohmann::json>& done);

/// The error of a done event.
struct CodeFault {
    std::string name;
    std::string message;
    nlohmann::json traceback = nlohmann::json::array();
};

/// Reads "name", "message" and "traceback" of a done event.
CodeFault read_fault(const nlohmann::json& done);

}  // namespace cellkeep::kernels::driver
