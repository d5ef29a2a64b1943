// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/wire/header_check.hpp"

#include "kernel-manager/mcp/wire/revision.hpp"
#include "protocol/mcp/header_value.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>

namespace cellkeep::mcp {

namespace {

RpcError mismatch(const Message& message, std::string why) {
    return {RpcCode::kHeaderMismatch, "Header mismatch: " + std::move(why), {}, message.id};
}

std::size_t count_fields(const http::Headers& headers, std::string_view name) {
    return static_cast<std::size_t>(
        std::count_if(headers.all().begin(), headers.all().end(), [name](const auto& field) {
            return http::equals_ignoring_case(field.first, name);
        }));
}

}  // namespace

const char* name_parameter(std::string_view method) {
    if (method == "tools/call" || method == "prompts/get") {
        return "name";
    }
    if (method.starts_with("tasks/")) {
        return "taskId";
    }
    return method == "resources/read" ? "uri" : nullptr;
}

std::optional<RpcError> check_headers(const http::Headers& headers, const Message& message) {
    for (const char* name : {"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"}) {
        if (count_fields(headers, name) > 1) {
            return mismatch(message, std::string(name) + " was sent twice.");
        }
    }
    const std::string_view version = trim(headers.get("MCP-Protocol-Version"));
    if (version != kStatelessRevision) {
        return mismatch(
            message, "MCP-Protocol-Version must be " + std::string(kStatelessRevision) + ".");
    }
    if (trim(headers.get("Mcp-Method")) != message.method) {
        return mismatch(message, "Mcp-Method is not the method of the body.");
    }
    const char* parameter = name_parameter(message.method);
    if (parameter == nullptr) {
        return std::nullopt;
    }
    const auto body = message.params.find(parameter);
    if (body == message.params.end() || !body->is_string()) {
        return std::nullopt;  // the method itself says what is wrong
    }
    const std::string* sent = headers.find("Mcp-Name");
    if (sent == nullptr) {
        return mismatch(message, "Mcp-Name is missing.");
    }
    if (protocol::decode_mcp_header(*sent) != body->get_ref<const std::string&>()) {
        return mismatch(message, "Mcp-Name is not \"" + std::string(parameter) + "\" of the body.");
    }
    return std::nullopt;
}

}  // namespace cellkeep::mcp
