// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/tool_stubs.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr std::string_view kLook =
    " Python code may call further tools: `from cellkeep import tools`, then tools.search(word), "
    "tools.list() and tools.server.name(argument=…).";
constexpr std::string_view kStubsBegin =
    " Python code may call these tools after `from cellkeep import tools`:";
constexpr std::size_t kWordBytesMax = 40;

/// A name that a model reads as one word: the tool server or the operator has chosen it.
bool is_plain_word(std::string_view text) {
    return !text.empty() && text.size() <= kWordBytesMax && (text[0] < '0' || text[0] > '9') &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9');
           });
}

bool is_tool_path(std::string_view name) {
    const std::size_t dot = name.find('.');
    return dot != std::string_view::npos && is_plain_word(name.substr(0, dot)) &&
           is_plain_word(name.substr(dot + 1));
}

std::string_view python_type(const nlohmann::json& schema) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTypes = {
        {{"string", "str"},
         {"integer", "int"},
         {"number", "float"},
         {"boolean", "bool"},
         {"array", "list"},
         {"object", "dict"}}};
    if (!schema.is_object() || !schema.contains("type")) {
        return {};
    }
    const auto* row = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& each) {
        return schema["type"] == each.first;
    });
    return row == kTypes.end() ? std::string_view() : row->second;
}

/// Those that must be given first. "…": there are others.
std::string parameters_of(const nlohmann::json& schema) {
    const auto properties = schema.is_object() ? schema.find("properties") : schema.end();
    if (properties == schema.end() || !properties->is_object()) {
        return schema.empty() ? "…" : "";  // nothing is known of it; it has none
    }
    nlohmann::json required = schema.value("required", nlohmann::json::array());
    if (!required.is_array()) {
        required = nlohmann::json::array();
    }
    std::string needed;
    std::string others;
    for (const auto& [name, property] : properties->items()) {
        const bool is_needed = std::find(required.begin(), required.end(), name) != required.end();
        std::string one = "…";
        if (is_plain_word(name)) {
            const std::string_view type = python_type(property);
            one = name + (type.empty() ? "" : ": ") + std::string(type) +
                  (is_needed ? "" : " = None");
        }
        std::string& list = is_needed ? needed : others;
        list += (list.empty() ? "" : ", ") + one;
    }
    return needed + (needed.empty() || others.empty() ? "" : ", ") + others;
}

}  // namespace

std::string describe_tools(std::string_view listed) {
    if (listed.empty()) {
        return {};
    }
    if (listed.size() > kStubsSourceBytesMax) {
        return std::string(kLook);
    }
    const auto tools = protocol::parse_json("[" + std::string(listed) + "]", "the list of tools");
    if (tools.has_error()) {
        return std::string(kLook);
    }
    std::string text(kStubsBegin);
    for (const nlohmann::json& tool : tools.value()) {
        const std::string name = tool.value("name", std::string());
        if (is_tool_path(name)) {
            text += "\ntools." + name + "(" +
                    parameters_of(tool.value("input_schema", nlohmann::json())) + ")";
        }
        if (text.size() > kStubsBytesMax) {
            return std::string(kLook);
        }
    }
    return text;
}

}  // namespace cellkeep::mcp
