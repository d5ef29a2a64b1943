// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/resources.hpp"

#include "kernel-manager/execution/artifacts/media_type.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/file_slice.hpp"
#include "protocol/base64.hpp"

#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr std::string_view kScheme = "cellkeep:/";

Error unknown_resource() {
    return {ErrorCode::kNotFound, "There is no such resource."};
}

struct ResourcePlace {
    std::string session;
    std::string path;
};

/// "cellkeep://sessions/S/files/a/b" as a target is "/sessions/S/files/a/b".
Result<ResourcePlace> parse_uri(const std::string& uri) {
    if (!uri.starts_with(kScheme)) {
        return unknown_resource();
    }
    const auto target = http::parse_target(std::string_view(uri).substr(kScheme.size()));
    if (target.has_error() || target.value().segments.size() < 4) {
        return unknown_resource();
    }
    const auto& segments = target.value().segments;
    if (segments[0] != "sessions" || segments[2] != "files") {
        return unknown_resource();
    }
    ResourcePlace place{segments[1], {}};
    for (std::size_t i = 3; i < segments.size(); ++i) {
        place.path += (i == 3 ? "" : "/") + segments[i];
    }
    return place;
}

}  // namespace

nlohmann::json list_resources(const SessionNames& names, const http::Principal& principal) {
    nlohmann::json resources = nlohmann::json::array();
    std::size_t looked_at = 0;
    for (const auto& [name, session] : names.list(principal)) {
        if (looked_at > kEntriesLookedAtMax) {
            break;
        }
        const auto workspace = session->workspace();
        if (workspace.has_error()) {
            continue;  // it has just ended
        }
        const auto entries = workspace.value().list("");
        if (entries.has_error()) {
            continue;  // a directory too large to be listed; read_file reads its files
        }
        looked_at += entries.value().size();
        for (const sandbox::Entry& entry : entries.value()) {
            if (resources.size() == kEntriesShownMax) {
                return {{"resources", std::move(resources)}};
            }
            if (entry.kind == sandbox::EntryKind::kFile) {
                resources.push_back(
                    {{"uri", file_uri(session->id(), entry.path)},
                     {"name", name + "/" + entry.path},
                     {"mimeType", session::media_type_of(entry.path)},
                     {"size", entry.bytes}});
            }
        }
    }
    return {{"resources", std::move(resources)}};
}

nlohmann::json list_resource_templates() {
    nlohmann::json file = {
        {"uriTemplate", "cellkeep://sessions/{session}/files/{+path}"},
        {"name", "session-file"},
        {"title", "A file of a session"},
        {"description", "The session by its name or id, the path in its working directory"}};
    return {{"resourceTemplates", nlohmann::json::array({std::move(file)})}};
}

Result<nlohmann::json> read_resource(
    const SessionNames& names, const http::Principal& principal, const std::string& uri) {
    BOOST_OUTCOME_TRY(const ResourcePlace place, parse_uri(uri));
    BOOST_OUTCOME_TRY(const SessionNames::Session session, names.find(principal, place.session));
    const auto path = sandbox::parse_workspace_path(place.path);
    if (path.has_error()) {
        return unknown_resource();
    }
    auto slice = read_slice(*session, path.value(), 0, kReadBytesMax);
    if (slice.has_error()) {
        return slice.error().code() == ErrorCode::kInvalidArgument ? unknown_resource()
                                                                   : slice.error();
    }
    session->touch();
    if (slice.value().bytes.size() < slice.value().file_bytes) {
        return Error(
            ErrorCode::kLimitExceeded,
            "The file has " + std::to_string(slice.value().file_bytes) +
                " bytes; the tool read_file reads it in parts.");
    }
    nlohmann::json content = {{"uri", uri}, {"mimeType", session::media_type_of(path.value())}};
    if (slice.value().is_text) {
        content["text"] = std::move(slice.value().bytes);
    } else {
        content["blob"] = protocol::encode_base64(slice.value().bytes);
    }
    return nlohmann::json{{"contents", nlohmann::json::array({std::move(content)})}};
}

}  // namespace cellkeep::mcp
