// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/tool_body.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace cellkeep::api {

namespace {

session::LentTool read_tool(
    const nlohmann::json& value, const std::string& pointer, FieldErrors& errors) {
    session::LentTool tool;
    ObjectReader reader(value, pointer, errors);
    if (!value.is_object()) {
        return tool;
    }
    if (const auto name = reader.text("name", limits::kToolNameBytesMax)) {
        tool.name = *name;
        if (!session::is_tool_name(*name)) {
            reader.fail(
                "name", "must be words of letters, digits and underscores with dots between them");
        }
    } else if (!reader.has("name")) {
        reader.fail("name", "is required");
    }
    tool.description = reader.text("description", limits::kToolsBytesMax).value_or("");
    if (const nlohmann::json* schema = reader.object("input_schema")) {
        tool.input_schema = *schema;
    }
    reader.finish();
    return tool;
}

bool is_among(const std::vector<session::LentTool>& tools, const std::string& name) {
    return std::any_of(
        tools.begin(), tools.end(), [&](const auto& tool) { return tool.name == name; });
}

}  // namespace

void read_tools(ObjectReader& parent, std::vector<session::LentTool>& tools, FieldErrors& errors) {
    const nlohmann::json* list = parent.array("tools");
    if (list == nullptr) {
        return;
    }
    if (list->size() > limits::kToolsLentMax) {
        parent.fail("tools", "must have at most " + std::to_string(limits::kToolsLentMax));
        return;
    }
    const std::string pointer = child_pointer(parent.pointer(), "tools");
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < list->size(); ++i) {
        const std::string where = child_pointer(pointer, std::to_string(i));
        session::LentTool tool = read_tool((*list)[i], where, errors);
        bytes += tool.name.size() + tool.description.size() +
                 protocol::dump_json(tool.input_schema).size();
        if (!tool.name.empty() && is_among(tools, tool.name)) {
            errors.push_back({child_pointer(where, "name"), "is another tool's, too"});
        }
        tools.push_back(std::move(tool));
    }
    if (bytes > limits::kToolsBytesMax) {
        parent.fail(
            "tools",
            "must have at most " + std::to_string(limits::kToolsBytesMax) +
                " bytes of names, descriptions and schemas");
    }
}

session::ToolAnswer parse_tool_answer(const nlohmann::json& body, FieldErrors& errors) {
    session::ToolAnswer answer;
    ObjectReader reader(body, "", errors);
    if (!body.is_object()) {
        return answer;
    }
    if (const nlohmann::json* result = reader.any("result")) {
        answer.result = *result;
    }
    answer.error = reader.text("error", limits::kToolResultBytesMax);
    if (reader.has("result") == reader.has("error")) {
        reader.fail("", "must have either \"result\" or \"error\"");
    }
    reader.finish();
    return answer;
}

}  // namespace cellkeep::api
