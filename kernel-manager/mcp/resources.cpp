// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/resources.hpp"

#include "kernel-manager/execution/artifacts/media_type.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/file_slice.hpp"
#include "kernel-manager/mcp/tools/run_answer.hpp"
#include "protocol/base64.hpp"
#include "protocol/json.hpp"
#include "protocol/support/time.hpp"

#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr std::string_view kScheme = "cellkeep:/";

Error unknown_resource() {
    return {ErrorCode::kNotFound, "There is no such resource."};
}

enum class ResourceKind { kFile, kOutput, kReport };

struct ResourcePlace {
    ResourceKind kind = ResourceKind::kFile;
    std::string session;
    std::string path;  // of the file; of an output the execution's id
};

/// "cellkeep://sessions/S/files/a/b" as a target is "/sessions/S/files/a/b".
Result<ResourcePlace> parse_uri(const std::string& uri) {
    if (!uri.starts_with(kScheme) || uri.size() > kUriBytesMax) {
        return unknown_resource();
    }
    const auto target = http::parse_target(std::string_view(uri).substr(kScheme.size()));
    if (target.has_error() || target.value().segments.size() < 2) {
        return unknown_resource();
    }
    const auto& segments = target.value().segments;
    if (segments[0] != "sessions") {
        return unknown_resource();
    }
    if (segments.size() == 2) {
        return ResourcePlace{ResourceKind::kReport, segments[1], {}};
    }
    if (segments.size() == 5 && segments[2] == "executions" && segments[4] == "output") {
        return ResourcePlace{ResourceKind::kOutput, segments[1], segments[3]};
    }
    if (segments.size() < 4 || segments[2] != "files") {
        return unknown_resource();
    }
    ResourcePlace place{ResourceKind::kFile, segments[1], {}};
    for (std::size_t i = 3; i < segments.size(); ++i) {
        place.path += (i == 3 ? "" : "/") + segments[i];
    }
    return place;
}

/// A resource that was found: its session lives.
struct FoundResource {
    ResourcePlace place;
    SessionNames::Session session;
};

Result<FoundResource> find_place(
    const SessionNames& names, const http::Principal& principal, const std::string& uri) {
    BOOST_OUTCOME_TRY(ResourcePlace place, parse_uri(uri));
    BOOST_OUTCOME_TRY(SessionNames::Session session, names.find(principal, place.session));
    if (place.kind == ResourceKind::kFile &&
        sandbox::parse_workspace_path(place.path).has_error()) {
        return unknown_resource();
    }
    if (place.kind == ResourceKind::kOutput && session->find_execution(place.path) == nullptr) {
        return unknown_resource();
    }
    return FoundResource{std::move(place), std::move(session)};
}

Result<nlohmann::json> read_file_content(
    session::Session& session, const std::string& path, nlohmann::json content) {
    auto slice = read_slice(session, path, 0, kReadBytesMax);
    if (slice.has_error()) {
        return slice.error().code() == ErrorCode::kInvalidArgument ? unknown_resource()
                                                                   : slice.error();
    }
    if (slice.value().bytes.size() < slice.value().file_bytes) {
        return Error(
            ErrorCode::kLimitExceeded,
            "The file has " + std::to_string(slice.value().file_bytes) +
                " bytes; the tool read_file reads it in parts.");
    }
    content["mimeType"] = session::media_type_of(path);
    if (slice.value().is_text) {
        content["text"] = std::move(slice.value().bytes);
    } else {
        content["blob"] = protocol::encode_base64(slice.value().bytes);
    }
    return content;
}

nlohmann::json report_of(const session::Session& session) {
    const session::SessionInfo info = session.info();
    nlohmann::json running = nlohmann::json::array();
    for (const auto& execution : session.list_executions()) {
        if (!execution->result()) {
            running.push_back(execution->id());
        }
    }
    return {
        {"session_id", info.id},
        {"language", info.language},
        {"kernel", session::to_string(info.state)},
        {"frozen", info.frozen},
        {"executions", info.executions},
        {"restarts", info.restarts},
        {"running", std::move(running)},
        {"created_at", to_iso8601(info.created_at)},
        {"last_activity", to_iso8601(info.last_activity)}};
}

std::string describe_file(session::Session& session, const std::string& path) {
    const auto workspace = session.workspace();
    if (workspace.has_error()) {
        return "absent";
    }
    const auto state = workspace.value().state(path);
    if (state.has_error()) {
        return "absent";
    }
    const sandbox::FileState& now = state.value();
    return std::to_string(now.inode) + " " + std::to_string(now.bytes) + " " +
           std::to_string(now.modified) + " " + std::to_string(now.changed);
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
        {"uriTemplate", kFileTemplate},
        {"name", "session-file"},
        {"title", "A file of a session"},
        {"description", "The session by its name or id, the path in its working directory"}};
    nlohmann::json output = {
        {"uriTemplate", kOutputTemplate},
        {"name", "run-output"},
        {"title", "What a run has said"},
        {"description", "Beginning and end of its output so far"},
        {"mimeType", "text/plain"}};
    nlohmann::json report = {
        {"uriTemplate", kReportTemplate},
        {"name", "session-report"},
        {"title", "A session as it stands"},
        {"description", "Its language, state and running code"},
        {"mimeType", "application/json"}};
    return {
        {"resourceTemplates",
         nlohmann::json::array({std::move(file), std::move(output), std::move(report)})}};
}

Result<nlohmann::json> read_resource(
    const SessionNames& names, const http::Principal& principal, const std::string& uri) {
    BOOST_OUTCOME_TRY(const FoundResource found, find_place(names, principal, uri));
    nlohmann::json content = {{"uri", uri}};
    switch (found.place.kind) {
        case ResourceKind::kFile: {
            BOOST_OUTCOME_TRY(
                content, read_file_content(*found.session, found.place.path, std::move(content)));
            break;
        }
        case ResourceKind::kOutput:
            content["mimeType"] = "text/plain";
            content["text"] = output_text(*found.session->find_execution(found.place.path));
            break;
        case ResourceKind::kReport:
            content["mimeType"] = "application/json";
            content["text"] = protocol::dump_json(report_of(*found.session));
            break;
    }
    found.session->touch();
    return nlohmann::json{{"contents", nlohmann::json::array({std::move(content)})}};
}

Status find_resource(
    const SessionNames& names, const http::Principal& principal, const std::string& uri) {
    BOOST_OUTCOME_TRY(find_place(names, principal, uri));
    return ok();
}

std::string describe_version(
    const SessionNames& names, const http::Principal& principal, const std::string& uri) {
    const auto found = find_place(names, principal, uri);
    if (found.has_error()) {
        return "gone";
    }
    session::Session& session = *found.value().session;
    switch (found.value().place.kind) {
        case ResourceKind::kFile:
            return describe_file(session, found.value().place.path);
        case ResourceKind::kOutput: {
            const auto execution = session.find_execution(found.value().place.path);
            return std::to_string(execution->events().last_sequence()) +
                   (execution->result() ? " ended" : "");
        }
        case ResourceKind::kReport: {
            const session::SessionInfo info = session.info();
            return std::string(to_string(info.state)) + " " + std::to_string(info.executions) +
                   " " + std::to_string(info.restarts) + (info.frozen ? " frozen" : "");
        }
    }
    return "gone";
}

}  // namespace cellkeep::mcp
