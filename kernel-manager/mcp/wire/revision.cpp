// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/wire/revision.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kLogLevelKey = "io.modelcontextprotocol/logLevel";

RpcError unsupported(const Message& message, const nlohmann::json& asked) {
    return {
        RpcCode::kUnsupportedVersion,
        "Unsupported protocol version",
        {{"supported", revisions()}, {"requested", asked}},
        message.id};
}

RpcError bad_envelope(const Message& message, std::string why) {
    return {RpcCode::kInvalidParams, std::move(why), {}, message.id};
}

const nlohmann::json& meta_of(const Message& message) {
    static const nlohmann::json none = nlohmann::json::object();
    const auto meta = message.params.find("_meta");
    return meta == message.params.end() ? none : *meta;
}

}  // namespace

const std::vector<std::string>& revisions() {
    static const std::vector<std::string> all = {
        std::string(kStatelessRevision), "2025-11-25", "2025-06-18", std::string(kUnnamedRevision)};
    return all;
}

bool is_session_revision(std::string_view revision) {
    return revision != kStatelessRevision &&
           std::find(revisions().begin(), revisions().end(), revision) != revisions().end();
}

std::string negotiate(std::string_view asked) {
    return is_session_revision(asked) ? std::string(asked) : revisions()[1];
}

std::variant<std::optional<Peer>, RpcError> read_peer(
    const Message& message, std::string_view header) {
    const nlohmann::json& meta = meta_of(message);
    if (!meta.is_object()) {
        return bad_envelope(message, "\"_meta\" must be an object.");
    }
    const auto version = meta.find(kVersionKey);
    if (version == meta.end()) {
        if (header == kStatelessRevision) {
            return bad_envelope(
                message, "params._meta lacks \"" + std::string(kVersionKey) + "\".");
        }
        if (!header.empty() && !is_session_revision(header) && message.method != "initialize") {
            return unsupported(message, std::string(header));
        }
        return std::optional<Peer>();
    }
    if (!version->is_string()) {
        return bad_envelope(message, "\"" + std::string(kVersionKey) + "\" must be a string.");
    }
    if (!header.empty() && *version != header) {
        return RpcError{
            RpcCode::kHeaderMismatch,
            "Header mismatch: MCP-Protocol-Version is not the version of the body.",
            {},
            message.id};
    }
    if (*version != kStatelessRevision) {
        return unsupported(message, *version);
    }
    const auto capabilities = meta.find(kCapabilitiesKey);
    if (message.kind == MessageKind::kRequest &&
        (capabilities == meta.end() || !capabilities->is_object())) {
        return bad_envelope(
            message, "params._meta lacks the object \"" + std::string(kCapabilitiesKey) + "\".");
    }
    Peer peer{Era::kStateless, std::string(kStatelessRevision), {}, {}};
    if (capabilities != meta.end()) {
        peer.capabilities = read_capabilities(*capabilities);
    }
    if (const auto level = meta.find(kLogLevelKey); level != meta.end()) {
        peer.log_level = level->is_string() ? parse_log_level(level->get_ref<const std::string&>())
                                            : std::nullopt;
        if (!peer.log_level) {
            return bad_envelope(message, "There is no such log level.");
        }
    }
    return std::optional<Peer>(std::move(peer));
}

RpcError no_such_resource(Era era, const std::string& uri) {
    return {
        era == Era::kStateless ? RpcCode::kInvalidParams : RpcCode::kResourceNotFound,
        "There is no such resource.",
        {{"uri", uri}},
        {}};
}

std::variant<nlohmann::json, RpcError> read_progress_token(const Message& message) {
    const nlohmann::json& meta = meta_of(message);
    if (!meta.is_object()) {
        return bad_envelope(message, "\"_meta\" must be an object.");
    }
    const auto token = meta.find("progressToken");
    if (token == meta.end()) {
        return nlohmann::json();
    }
    if (!is_token(*token)) {
        return bad_envelope(message, "The progress token must be an integer or a short string.");
    }
    return *token;
}

}  // namespace cellkeep::mcp
