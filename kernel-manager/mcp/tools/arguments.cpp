// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/arguments.hpp"

#include <algorithm>
#include <cstdint>

namespace cellkeep::mcp {

namespace {

bool has_type(const nlohmann::json& value, const std::string& type) {
    if (type == "string") {
        return value.is_string();
    }
    if (type == "integer") {
        return value.is_number_integer();
    }
    return type == "boolean" && value.is_boolean();
}

/// Of numbers and texts: "minimum" counts the number, "minLength" the bytes.
std::string find_wrong_size(const nlohmann::json& value, const nlohmann::json& schema) {
    const bool is_text = value.is_string();
    // An unsigned number that no signed one holds is past every maximum.
    const bool is_huge = value.is_number_unsigned() &&
                         value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    const std::int64_t size =
        is_text ? static_cast<std::int64_t>(value.get_ref<const std::string&>().size())
                : (is_huge ? INT64_MAX : value.get<std::int64_t>());
    const std::string unit = is_text ? " bytes" : "";
    const auto least = schema.find(is_text ? "minLength" : "minimum");
    if (least != schema.end() && size < least->get<std::int64_t>()) {
        return " must be at least " + least->dump() + unit + ".";
    }
    const auto most = schema.find(is_text ? "maxLength" : "maximum");
    if (most != schema.end() && size > most->get<std::int64_t>()) {
        return " must be at most " + most->dump() + unit + ".";
    }
    return {};
}

std::string find_wrong_value(const nlohmann::json& value, const nlohmann::json& schema) {
    const std::string type = schema.at("type").get<std::string>();
    if (!has_type(value, type)) {
        return " must be of type " + type + ".";
    }
    if (const auto choices = schema.find("enum");
        choices != schema.end() &&
        std::find(choices->begin(), choices->end(), value) == choices->end()) {
        return " must be one of " + choices->dump() + ".";
    }
    return value.is_boolean() ? std::string() : find_wrong_size(value, schema);
}

}  // namespace

std::string find_wrong_arguments(const nlohmann::json& schema, const nlohmann::json& arguments) {
    if (!arguments.is_object()) {
        return "The arguments must be an object.";
    }
    std::string wrong;
    const auto add = [&wrong](const std::string& sentence) {
        wrong += (wrong.empty() ? "" : " ") + sentence;
    };
    const nlohmann::json& known = schema.at("properties");
    for (const auto& [name, value] : arguments.items()) {
        const auto property = known.find(name);
        if (property == known.end()) {
            add("There is no argument \"" + name.substr(0, 64) + "\".");
            return wrong;  // one is enough to say so: a client may send thousands
        }
        if (const std::string what = find_wrong_value(value, *property); !what.empty()) {
            add("\"" + name + "\"" + what);
        }
    }
    if (const auto required = schema.find("required"); required != schema.end()) {
        for (const auto& name : *required) {
            if (!arguments.contains(name.get_ref<const std::string&>())) {
                add(name.dump() + " is missing.");
            }
        }
    }
    return wrong;
}

std::string text_argument(
    const nlohmann::json& arguments, const char* name, const std::string& fallback) {
    const auto value = arguments.find(name);
    return value == arguments.end() ? fallback : value->get<std::string>();
}

std::int64_t number_argument(
    const nlohmann::json& arguments, const char* name, std::int64_t fallback) {
    const auto value = arguments.find(name);
    return value == arguments.end() ? fallback : value->get<std::int64_t>();
}

bool flag_argument(const nlohmann::json& arguments, const char* name) {
    const auto value = arguments.find(name);
    return value != arguments.end() && value->get<bool>();
}

}  // namespace cellkeep::mcp
