// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/wire/capabilities.hpp"

namespace cellkeep::mcp {

namespace {

bool declares(const nlohmann::json& declared, const char* name) {
    const auto value = declared.find(name);
    return value != declared.end() && value->is_object();
}

/// Without a word about its modes a client shows forms.
bool shows_forms(const nlohmann::json& declared) {
    if (!declares(declared, "elicitation")) {
        return false;
    }
    const nlohmann::json& modes = declared.at("elicitation");
    return modes.contains("form") || !modes.contains("url");
}

}  // namespace

bool ClientCapabilities::answers(std::string_view method) const {
    const std::string_view name = capability_for(method);
    return (name == "elicitation" && elicitation) || (name == "sampling" && sampling) ||
           (name == "roots" && roots);
}

ClientCapabilities read_capabilities(const nlohmann::json& declared) {
    if (!declared.is_object()) {
        return {};
    }
    const nlohmann::json extensions = declared.value("extensions", nlohmann::json());
    return {
        shows_forms(declared),
        declares(declared, "sampling"),
        declares(declared, "roots"),
        extensions.is_object() && declares(extensions, kTasksExtension)};
}

std::string_view capability_for(std::string_view method) {
    if (method == "elicitation/create") {
        return "elicitation";
    }
    if (method == "sampling/createMessage") {
        return "sampling";
    }
    return method == "roots/list" ? "roots" : "";
}

}  // namespace cellkeep::mcp
