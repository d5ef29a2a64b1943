// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/completions.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/prompts.hpp"
#include "kernel-manager/mcp/resources.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::mcp {

namespace {

Error wrong_completion(std::string why) {
    return {ErrorCode::kInvalidArgument, std::move(why)};
}

/// A text of at most kPromptArgumentBytesMax; null if it is none.
const std::string* short_text(const nlohmann::json& object, const char* name) {
    const auto value = object.find(name);
    if (value == object.end() || !value->is_string()) {
        return nullptr;
    }
    const auto& text = value->get_ref<const std::string&>();
    return text.size() <= kPromptArgumentBytesMax ? &text : nullptr;
}

std::string session_of(const CompletionOrder& order) {
    const std::string* named = short_text(order.context, "session");
    return named == nullptr ? "default" : *named;
}

std::vector<std::string> session_values(
    const SessionNames& names, const http::Principal& principal) {
    std::vector<std::string> values;
    for (const auto& [name, session] : names.list(principal)) {
        values.push_back(name);
    }
    return values;
}

/// Of the directory that the typed path names so far.
std::vector<std::string> path_values(session::Session& session, const std::string& typed) {
    const std::size_t slash = typed.rfind('/');
    const std::string directory = slash == std::string::npos ? "" : typed.substr(0, slash);
    std::vector<std::string> values;
    const auto workspace = session.workspace();
    const auto path = sandbox::parse_workspace_path(directory);
    if (workspace.has_error() || path.has_error()) {
        return values;
    }
    const auto entries = workspace.value().list(path.value());
    if (entries.has_error()) {
        return values;
    }
    for (const sandbox::Entry& entry : entries.value()) {
        const bool inner = entry.kind == sandbox::EntryKind::kDirectory;
        values.push_back(entry.path + (inner ? "/" : ""));
    }
    return values;
}

std::vector<std::string> execution_values(const session::Session& session) {
    std::vector<std::string> values;
    for (const auto& execution : session.list_executions()) {
        values.push_back(execution->id());
    }
    return values;
}

bool has_argument(const CompletionOrder& order) {
    if (order.of_prompt) {
        return has_prompt_argument(order.ref, order.argument);
    }
    const bool known =
        order.ref == kFileTemplate || order.ref == kOutputTemplate || order.ref == kReportTemplate;
    return known && !order.argument.starts_with('+') &&
           (order.ref.find("{" + order.argument + "}") != std::string::npos ||
            order.ref.find("{+" + order.argument + "}") != std::string::npos);
}

}  // namespace

Result<CompletionOrder> read_completion(const nlohmann::json& params) {
    const nlohmann::json ref = params.value("ref", nlohmann::json());
    const nlohmann::json argument = params.value("argument", nlohmann::json());
    if (!ref.is_object() || !argument.is_object()) {
        return wrong_completion("\"ref\" and \"argument\" must be objects.");
    }
    CompletionOrder order;
    const std::string* type = short_text(ref, "type");
    if (type == nullptr || (*type != "ref/prompt" && *type != "ref/resource")) {
        return wrong_completion("\"ref\" must be of the type ref/prompt or ref/resource.");
    }
    order.of_prompt = *type == "ref/prompt";
    const std::string* name = short_text(ref, order.of_prompt ? "name" : "uri");
    const std::string* asked = short_text(argument, "name");
    const std::string* value = short_text(argument, "value");
    if (name == nullptr || asked == nullptr || value == nullptr) {
        return wrong_completion(
            "The reference, or the argument's name or value, is no short text.");
    }
    order.ref = *name;
    order.argument = *asked;
    order.value = *value;
    const nlohmann::json context = params.value("context", nlohmann::json::object());
    if (!context.is_object() || !context.value("arguments", nlohmann::json::object()).is_object()) {
        return wrong_completion("\"context\" must be an object with \"arguments\".");
    }
    order.context = context.value("arguments", nlohmann::json::object());
    return order;
}

nlohmann::json completion_of(std::vector<std::string> values) {
    const std::size_t total = values.size();
    values.resize(std::min(total, kCompletionsMax));
    return {{"values", std::move(values)}, {"total", total}, {"hasMore", total > kCompletionsMax}};
}

Result<nlohmann::json> complete(
    const SessionNames& names, const http::Principal& principal, const CompletionOrder& order) {
    if (!has_argument(order)) {
        return Error(ErrorCode::kNotFound, "There is no such argument.");
    }
    std::vector<std::string> values;
    if (order.argument == "session") {
        values = session_values(names, principal);
    } else if (const auto session = names.find(principal, session_of(order)); session.has_value()) {
        if (order.argument == "path") {
            values = path_values(*session.value(), order.value);
        } else if (order.argument == "execution_id") {
            values = execution_values(*session.value());
        }
    }
    std::erase_if(values, [&](const auto& each) { return !each.starts_with(order.value); });
    std::sort(values.begin(), values.end());
    return completion_of(std::move(values));
}

}  // namespace cellkeep::mcp
