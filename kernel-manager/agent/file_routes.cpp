// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/model.hpp"
#include "kernel-manager/agent/routes.hpp"
#include "kernel-manager/http/problem.hpp"
#include "kernel-manager/http/range.hpp"
#include "sandbox/workspace.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace cellkeep::agent {

namespace {

struct MediaType {
    std::string_view extension;
    std::string_view type;
};

/// What analyses write. Everything else is bytes.
constexpr std::array kMediaTypes = {
    MediaType{".csv", "text/csv"},
    MediaType{".gif", "image/gif"},
    MediaType{".html", "text/html"},
    MediaType{".ipynb", "application/x-ipynb+json"},
    MediaType{".jpeg", "image/jpeg"},
    MediaType{".jpg", "image/jpeg"},
    MediaType{".json", "application/json"},
    MediaType{".md", "text/markdown"},
    MediaType{".parquet", "application/vnd.apache.parquet"},
    MediaType{".pdf", "application/pdf"},
    MediaType{".png", "image/png"},
    MediaType{".py", "text/x-python"},
    MediaType{".svg", "image/svg+xml"},
    MediaType{".txt", "text/plain"},
};

std::string_view media_type(std::string_view path) {
    for (const MediaType& known : kMediaTypes) {
        if (path.size() > known.extension.size() &&
            http::equals_ignoring_case(
                path.substr(path.size() - known.extension.size()), known.extension)) {
            return known.type;
        }
    }
    return "application/octet-stream";
}

http::Response bad_path(const Error& error) {
    return http::to_response(
        http::make_problem(400, "bad-path", "The path is not allowed", error.message()));
}

/// How a failure of the workspace looks outside. A path that is not a regular file, or that a link
/// leads out of, is a conflict with what is there, not a malformed request.
http::Response file_problem(const Error& error) {
    switch (error.code()) {
        case ErrorCode::kNotFound:
            return http::to_response(
                http::make_problem(404, "unknown-file", "No such file", error.message()));
        case ErrorCode::kInvalidArgument:
            return http::to_response(
                http::make_problem(409, "not-a-file", "This is not a plain file", error.message()));
        case ErrorCode::kLimitExceeded:
            return http::to_response(http::make_problem(
                413, "workspace-full", "The workspace has no room for it", error.message()));
        default:
            return http::to_response(http::problem_from(error));
    }
}

/// The answer to an upload whose body could not be read to its end.
http::Response upload_problem(const Error& error) {
    switch (error.code()) {
        case ErrorCode::kLimitExceeded:
            return http::to_response(http::make_problem(
                413,
                "An upload is at most " + std::to_string(limits::kUploadBytesMax) + " bytes."));
        case ErrorCode::kTimeout:
            return http::to_response(http::make_problem(408, error.message()));
        default:
            return http::to_response(http::make_problem(400, error.message()));
    }
}

std::string etag(const sandbox::Workspace::OpenedFile& file) {
    return "\"" + std::to_string(file.modified.time_since_epoch().count()) + "-" +
           std::to_string(file.bytes) + "\"";
}

}  // namespace

Routes::Answer Routes::list_files(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    const auto path = sandbox::parse_workspace_path(request.target.find_query("path").value_or(""));
    if (path.has_error()) {
        co_return bad_path(path.error());
    }
    session->touch();
    const auto workspace = session->workspace();
    if (workspace.has_error()) {
        co_return http::to_response(http::problem_from(workspace.error()));
    }
    const auto entries = workspace.value().list(path.value());
    if (entries.has_error()) {
        co_return file_problem(entries.error());
    }
    nlohmann::json list = nlohmann::json::array();
    for (const sandbox::Entry& entry : entries.value()) {
        list.push_back(to_json(entry));
    }
    co_return http::make_json(200, {{"path", path.value()}, {"entries", std::move(list)}});
}

Routes::Answer Routes::get_file(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    const auto path = sandbox::parse_workspace_path(request.capture("path"));
    if (path.has_error()) {
        co_return bad_path(path.error());
    }
    session->touch();
    const auto workspace = session->workspace();
    if (workspace.has_error()) {
        co_return http::to_response(http::problem_from(workspace.error()));
    }
    auto opened = workspace.value().open_for_reading(path.value());
    if (opened.has_error()) {
        co_return file_problem(opened.error());
    }
    sandbox::Workspace::OpenedFile file = std::move(opened).value();
    const std::string tag = etag(file);
    // A range is of the version the client knows; of another one it gets the whole (RFC
    // 9110, 13.1.5).
    const std::string* if_range = request.headers.find("If-Range");
    const bool same = if_range == nullptr || *if_range == tag;
    const http::RangeAnswer answer =
        http::select_range(same ? request.headers.get("Range") : std::string_view(), file.bytes);
    const std::string size = std::to_string(file.bytes);
    if (answer.outcome == http::RangeOutcome::kNotSatisfiable) {
        http::Response refused =
            http::to_response(http::make_problem(416, "The file has " + size + " bytes."));
        refused.headers.add("Content-Range", "bytes */" + size);
        co_return refused;
    }
    http::Response response;
    response.headers.add("Content-Type", std::string(media_type(path.value())));
    response.headers.add("Accept-Ranges", "bytes");
    response.headers.add("ETag", tag);
    // The bytes are the guest's: no browser may run them in this server's origin.
    response.headers.add("Content-Disposition", "attachment");
    response.headers.add("Content-Security-Policy", "sandbox; default-src 'none'");
    if (answer.outcome == http::RangeOutcome::kPart) {
        response.status = 206;
        const std::uint64_t last = answer.range.offset + answer.range.length - 1;
        response.headers.add(
            "Content-Range",
            "bytes " + std::to_string(answer.range.offset) + "-" + std::to_string(last) + "/" +
                size);
    }
    response.body = http::FileBody{std::move(file.fd), answer.range.offset, answer.range.length};
    co_return response;
}

Routes::Answer Routes::put_file(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    const auto path = sandbox::parse_workspace_path(request.capture("path"));
    if (path.has_error()) {
        co_return bad_path(path.error());
    }
    session->touch();
    const auto workspace = session->workspace();
    if (workspace.has_error()) {
        co_return http::to_response(http::problem_from(workspace.error()));
    }
    const bool existed = workspace.value().stat(path.value()).has_value();
    auto begun = workspace.value().begin_upload(path.value());
    if (begun.has_error()) {
        co_return file_problem(begun.error());
    }
    sandbox::Workspace::Upload upload = std::move(begun).value();
    for (;;) {
        const auto piece = co_await request.stream->read();
        if (piece.has_error()) {
            co_return upload_problem(piece.error());
        }
        if (piece.value().empty()) {
            break;
        }
        const Status appended = upload.append(piece.value());
        if (appended.has_error()) {
            co_return file_problem(appended.error());
        }
    }
    const Status committed = upload.commit();
    if (committed.has_error()) {
        co_return file_problem(committed.error());
    }
    // Asked anew: the session may have ended while the bytes came in.
    const auto now = session->workspace();
    if (now.has_error()) {
        co_return http::to_response(http::problem_from(now.error()));
    }
    const auto entry = now.value().stat(path.value());
    if (entry.has_error()) {
        co_return file_problem(entry.error());
    }
    co_return http::make_json(existed ? 200 : 201, to_json(entry.value()));
}

Routes::Answer Routes::remove_file(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    const auto path = sandbox::parse_workspace_path(request.capture("path"));
    if (path.has_error()) {
        co_return bad_path(path.error());
    }
    session->touch();
    const auto workspace = session->workspace();
    if (workspace.has_error()) {
        co_return http::to_response(http::problem_from(workspace.error()));
    }
    const Status removed = workspace.value().remove(path.value());
    if (removed.has_error()) {
        co_return file_problem(removed.error());
    }
    co_return http::make_empty(204);
}

}  // namespace cellkeep::agent
