// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_events.hpp"

#include "kernel-manager/execution/error_text.hpp"

#include <string>
#include <utility>

namespace cellkeep::session {

namespace {

using nlohmann::json;

std::string text_of(const json& content, const char* name) {
    const auto found = content.find(name);
    return found != content.end() && found->is_string() ? found->get<std::string>() : std::string();
}

json object_of(const json& content, const char* name) {
    const auto found = content.find(name);
    return found != content.end() && found->is_object() ? *found : json::object();
}

json display_of(const json& content) {
    json data = {
        {"data", object_of(content, "data")}, {"metadata", object_of(content, "metadata")}};
    if (std::string id = text_of(object_of(content, "transient"), "display_id"); !id.empty()) {
        data["display_id"] = std::move(id);
    }
    return data;
}

json error_of(const json& content) {
    json traceback = json::array();
    const auto lines = content.find("traceback");
    if (lines != content.end() && lines->is_array()) {
        for (const json& line : *lines) {
            if (line.is_string()) {
                traceback.push_back(strip_escapes(line.get_ref<const std::string&>()));
            }
        }
    }
    return {
        {"name", text_of(content, "ename")},
        {"message", strip_escapes(text_of(content, "evalue"))},
        {"traceback", std::move(traceback)}};
}

}  // namespace

void add_output_event(Execution& execution, const protocol::Message& message) {
    const std::string& type = message.header().msg_type;
    if (type == "status" || type == "execute_input") {
        return;
    }
    const auto parsed = message.parse_content();
    if (parsed.has_error() || !parsed.value().is_object()) {
        return;  // a guest that lies about itself
    }
    const json& content = parsed.value();
    if (type == "stream") {
        execution.add_event(
            text_of(content, "name") == "stderr" ? "stderr" : "stdout",
            {{"text", text_of(content, "text")}});
    } else if (type == "display_data") {
        execution.add_event("display", display_of(content));
    } else if (type == "update_display_data") {
        execution.add_event("update_display", display_of(content));
    } else if (type == "clear_output") {
        const auto wait = content.find("wait");
        const bool later = wait != content.end() && wait->is_boolean() && wait->get<bool>();
        execution.add_event("clear_output", {{"wait", later}});
    } else if (type == "execute_result") {
        const auto count = content.find("execution_count");
        const bool counted = count != content.end() && count->is_number_integer();
        execution.add_event(
            "result",
            {{"data", object_of(content, "data")},
             {"metadata", object_of(content, "metadata")},
             {"execution_count", counted ? *count : json(nullptr)}});
    } else if (type == "error") {
        execution.add_event("error", error_of(content));
    }
}

}  // namespace cellkeep::session
