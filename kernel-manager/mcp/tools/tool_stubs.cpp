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
    " Code in Python and JavaScript may call further tools: `from cellkeep import tools`, then "
    "tools.search(word), tools.list() and tools.server.name(argument=…); or `import {tools} from "
    "'cellkeep'`, then await tools.server.name({argument: …}).";
constexpr std::string_view kStubsBegin =
    " Code in Python (`from cellkeep import tools`) and JavaScript (`import {tools} from "
    "'cellkeep'`; await, arguments as one object) may call these tools:";
constexpr std::string_view kMore = "\ntools.list() names more.";
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

/// What Python reads as something else than a name.
bool is_keyword(std::string_view word) {
    static constexpr std::array<std::string_view, 35> kKeywords = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

/// Whether code gets at it with a dot (kernels/python/cellkeep_kernel/tools.py).
bool follows_dot(std::string_view word) {
    const bool is_hidden = word[0] == '_' && (word.size() == 1 || word[1] < '0' || word[1] > '9');
    return !is_hidden && !is_keyword(word) && word != "aio";
}

/// "tools.hub.create(title: str)"
std::string signature_of(std::string_view path, const std::string& parameters) {
    const std::size_t dot = path.find('.');
    if (follows_dot(path.substr(0, dot)) && follows_dot(path.substr(dot + 1))) {
        return "tools." + std::string(path) + "(" + parameters + ")";
    }
    return "tools.call(\"" + std::string(path) + "\"" + (parameters.empty() ? "" : ", ") +
           parameters + ")";
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
        if (is_plain_word(name) && !is_keyword(name)) {
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
    bool left_out = false;
    for (const nlohmann::json& tool : tools.value()) {
        const std::string name = tool.value("name", std::string());
        if (is_tool_path(name)) {
            text += "\n" +
                    signature_of(name, parameters_of(tool.value("input_schema", nlohmann::json())));
        } else {
            left_out = true;
        }
        if (text.size() > kStubsBytesMax) {
            return std::string(kLook);
        }
    }
    return text + std::string(left_out ? kMore : "");
}

}  // namespace cellkeep::mcp
