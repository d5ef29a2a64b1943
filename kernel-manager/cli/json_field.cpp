// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/json_field.hpp"

namespace cellkeep::cli {

// find() gives end() for what is not an object.

std::string text_field(
    const nlohmann::json& object, const char* name, const std::string& fallback) {
    const auto field = object.find(name);
    return field != object.end() && field->is_string() ? field->get<std::string>() : fallback;
}

double number_field(const nlohmann::json& object, const char* name, double fallback) {
    const auto field = object.find(name);
    return field != object.end() && field->is_number() ? field->get<double>() : fallback;
}

const nlohmann::json& array_field(const nlohmann::json& object, const char* name) {
    static const nlohmann::json empty = nlohmann::json::array();
    const auto field = object.find(name);
    return field != object.end() && field->is_array() ? *field : empty;
}

}  // namespace cellkeep::cli
