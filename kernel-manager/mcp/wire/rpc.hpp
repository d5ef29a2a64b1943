// SPDX-License-Identifier: Apache-2.0
//
// JSON-RPC 2.0 as MCP uses it: one message at a time, ids that are strings or integers, parameters
// that are an object. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <variant>

namespace cellkeep::mcp {

/// The codes that this server sends. Those from -32020 on are the specification's own.
enum class RpcCode {
    kParseError = -32700,
    kInvalidRequest = -32600,
    kMethodNotFound = -32601,
    kInvalidParams = -32602,
    kInternalError = -32603,
    kResourceNotFound = -32002,  // up to 2025-11-25; later it is kInvalidParams
    kHeaderMismatch = -32020,
    kMissingCapability = -32021,
    kUnsupportedVersion = -32022,
};

struct RpcError {
    RpcCode code = RpcCode::kInternalError;
    std::string message;     // one sentence
    nlohmann::json data;     // null: none
    nlohmann::json id = {};  // of the request, as far as it could be read
};

enum class MessageKind { kRequest, kNotification, kResponse };

struct Message {
    MessageKind kind = MessageKind::kRequest;
    nlohmann::json id;  // null for a notification
    std::string method;
    nlohmann::json params = nlohmann::json::object();
    /// Of a response: {"result": …} or {"error": …}.
    nlohmann::json response = {};
    /// Of a request that may have to ask its client something: digest_params().
    std::string params_digest = {};
};

/// What tells a request's wish from another's: its parameters but for those that change when it
/// comes again with answers.
std::string digest_params(const nlohmann::json& params);

/// A parameter that is a text; null if it is none.
const std::string* text_parameter(const Message& message, const char* name);

/// A batch is refused: two of the four revisions know none, and no client of ours sends one.
std::variant<Message, RpcError> parse_message(std::string_view text);

nlohmann::json result_message(const nlohmann::json& id, nlohmann::json result);
/// Without an id if that could not be read.
nlohmann::json error_message(const RpcError& error);
nlohmann::json notification_message(std::string_view method, nlohmann::json params);
/// What the server asks a client.
nlohmann::json request_message(
    const std::string& id, std::string_view method, nlohmann::json params);

/// Whether it may be a request's id or a progress token: an integer, or a string of at most
/// kIdBytesMax.
bool is_token(const nlohmann::json& value);

}  // namespace cellkeep::mcp
