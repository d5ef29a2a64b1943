// SPDX-License-Identifier: Apache-2.0
//
// PUT of a file or a directory.
#include "kernel-manager/api/file_answers.hpp"
#include "kernel-manager/api/model.hpp"
#include "kernel-manager/api/routes.hpp"
#include "kernel-manager/http/problem.hpp"
#include "protocol/limits.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <string>
#include <utility>

namespace cellkeep::agent {

namespace {

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

/// "" if there is none.
std::string tag_of(const sandbox::Workspace& workspace, const std::string& path) {
    const auto state = workspace.state(path);
    return state.has_value() ? etag(state.value()) : std::string();
}

http::Response describe(
    const sandbox::Workspace& workspace, const std::string& path, int success_status) {
    const auto entry = workspace.stat(path);
    if (entry.has_error()) {
        return file_problem(entry.error());
    }
    http::Response response = http::make_json(success_status, to_json(entry.value()));
    if (const std::string tag = tag_of(workspace, path); !tag.empty()) {
        response.headers.add("ETag", tag);
    }
    return response;
}

}  // namespace

Routes::Answer Routes::put_file(http::Request& request) {
    const auto session = find_session(backend_, request);
    if (session == nullptr) {
        http::Response gone = co_await history_.answer_session(request);
        co_return gone;
    }
    std::string named = request.capture("path");
    if (named.size() > 1 && named.back() == '/') {
        named.pop_back();
        co_return co_await put_directory(request, *session, named);
    }
    const auto path = sandbox::parse_workspace_path(named);
    if (path.has_error()) {
        co_return bad_path(path.error());
    }
    count_as_use(request, *session);
    const auto workspace = session->workspace();
    if (workspace.has_error()) {
        co_return http::to_response(http::problem_from(workspace.error()));
    }
    if (auto refused = refuse_input(*session, path.value())) {
        co_return std::move(*refused);
    }
    const std::string before = tag_of(workspace.value(), path.value());
    if (auto refused = check_conditions(request.headers, before)) {
        co_return std::move(*refused);
    }
    auto begun = workspace.value().begin_upload(path.value());
    if (begun.has_error()) {
        co_return http::to_response(placement_problem(begun.error()));
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
    // Asked anew: the session may have ended, the file may have changed while the bytes came in.
    const auto now = session->workspace();
    if (now.has_error()) {
        co_return http::to_response(http::problem_from(now.error()));
    }
    if (auto refused = check_conditions(request.headers, tag_of(now.value(), path.value()))) {
        co_return std::move(*refused);
    }
    const Status committed = upload.commit();
    if (committed.has_error()) {
        co_return http::to_response(placement_problem(committed.error()));
    }
    co_return describe(now.value(), path.value(), before.empty() ? 201 : 200);
}

Routes::Answer Routes::put_directory(
    http::Request& request, session::Session& session, const std::string& named) {
    const auto path = sandbox::parse_workspace_path(named);
    if (path.has_error()) {
        co_return bad_path(path.error());
    }
    const auto piece = co_await request.stream->read();
    if (piece.has_error()) {
        co_return upload_problem(piece.error());
    }
    if (!piece.value().empty()) {
        co_return http::to_response(
            http::make_problem(400, "A directory (a path that ends with /) has no body."));
    }
    count_as_use(request, session);
    const auto workspace = session.workspace();
    if (workspace.has_error()) {
        co_return http::to_response(http::problem_from(workspace.error()));
    }
    const auto there = workspace.value().state(path.value());
    const bool existed = there.has_value();
    if (existed && there.value().kind != sandbox::EntryKind::kDirectory) {
        co_return http::to_response(http::make_problem(
            409, "not-a-directory", "This is not a directory", "There is a file of that name."));
    }
    const Status made = workspace.value().make_directory(path.value());
    if (made.has_error()) {
        co_return http::to_response(placement_problem(made.error()));
    }
    co_return describe(workspace.value(), path.value(), existed ? 200 : 201);
}

}  // namespace cellkeep::agent
