// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/wire/rpc.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "protocol/json.hpp"
#include "protocol/sha256.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::mcp {

namespace {

RpcError invalid_request(std::string why, nlohmann::json id = {}) {
    return {RpcCode::kInvalidRequest, std::move(why), {}, std::move(id)};
}

constexpr std::array<std::string_view, 2> kAskingMethods = {"prompts/get", "tools/call"};
constexpr std::array<std::string_view, 3> kOfOneTry = {"_meta", "inputResponses", "requestState"};

}  // namespace

std::string digest_params(const nlohmann::json& params) {
    protocol::Sha256 digest;
    for (const auto& [name, value] : params.items()) {
        if (std::find(kOfOneTry.begin(), kOfOneTry.end(), name) == kOfOneTry.end()) {
            digest.update_field(name);
            digest.update_field(protocol::dump_json(value));
        }
    }
    return digest.finish();
}

bool is_token(const nlohmann::json& value) {
    return value.is_number_integer() ||
           (value.is_string() && value.get_ref<const std::string&>().size() <= kIdBytesMax);
}

std::variant<Message, RpcError> parse_message(std::string_view text) {
    auto parsed = protocol::parse_json(
        text, "the message", protocol::RepeatedKeys::kRefused, kMessageValuesMax);
    if (parsed.has_error()) {
        return RpcError{RpcCode::kParseError, parsed.error().message(), {}, {}};
    }
    nlohmann::json& value = parsed.value();
    if (value.is_array()) {
        return invalid_request("Batches are not supported: send one message at a time.");
    }
    if (!value.is_object()) {
        return invalid_request("A message is a JSON object.");
    }
    Message message;
    const auto id = value.find("id");
    if (id != value.end()) {
        if (!is_token(*id)) {
            return invalid_request("The id must be an integer or a short string.");
        }
        message.id = *id;
    }
    const auto version = value.find("jsonrpc");
    if (version == value.end() || *version != "2.0") {
        return invalid_request("\"jsonrpc\" must be \"2.0\".", message.id);
    }
    const auto method = value.find("method");
    if (method == value.end()) {
        if (!value.contains("result") && !value.contains("error")) {
            return invalid_request("The message has no method.", message.id);
        }
        message.kind = MessageKind::kResponse;
        const char* kind = value.contains("result") ? "result" : "error";
        message.response[kind] = std::move(value[kind]);
        return message;
    }
    if (!method->is_string()) {
        return invalid_request("The method must be a string.", message.id);
    }
    message.kind = id == value.end() ? MessageKind::kNotification : MessageKind::kRequest;
    message.method = method->get<std::string>();
    if (const auto params = value.find("params"); params != value.end()) {
        if (!params->is_object()) {
            return RpcError{
                RpcCode::kInvalidParams, "\"params\" must be an object.", {}, message.id};
        }
        message.params = std::move(*params);
    }
    // Here and not where it is needed: a long message is read by another thread.
    if (std::find(kAskingMethods.begin(), kAskingMethods.end(), message.method) !=
        kAskingMethods.end()) {
        message.params_digest = digest_params(message.params);
    }
    return message;
}

const std::string* text_parameter(const Message& message, const char* name) {
    const auto value = message.params.find(name);
    return value == message.params.end() || !value->is_string()
               ? nullptr
               : &value->get_ref<const std::string&>();
}

nlohmann::json result_message(const nlohmann::json& id, nlohmann::json result) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

nlohmann::json error_message(const RpcError& error) {
    nlohmann::json body = {{"code", static_cast<int>(error.code)}, {"message", error.message}};
    if (!error.data.is_null()) {
        body["data"] = error.data;
    }
    nlohmann::json message = {{"jsonrpc", "2.0"}, {"error", std::move(body)}};
    if (!error.id.is_null()) {
        message["id"] = error.id;
    }
    return message;
}

nlohmann::json notification_message(std::string_view method, nlohmann::json params) {
    return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

nlohmann::json request_message(
    const std::string& id, std::string_view method, nlohmann::json params) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
}

}  // namespace cellkeep::mcp
