// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/upload_routes.hpp"

#include "kernel-manager/api/answers/file_answers.hpp"
#include "kernel-manager/api/answers/model.hpp"
#include "kernel-manager/api/routes/file_place.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "protocol/limits.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <string>
#include <utility>

namespace cellkeep::api {

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

boost::asio::awaitable<http::Response> put_directory(http::Request& request, FilePlace place) {
    const auto piece = co_await request.stream->read();
    if (piece.has_error()) {
        co_return upload_problem(piece.error());
    }
    if (!piece.value().empty()) {
        co_return http::to_response(
            http::make_problem(400, "A directory (a path that ends with /) has no body."));
    }
    auto workspace = use_workspace(request, *place.session);
    if (workspace.has_error()) {
        co_return std::move(workspace).error();
    }
    const auto there = workspace.value().state(place.path);
    const bool existed = there.has_value();
    if (existed && there.value().kind != sandbox::EntryKind::kDirectory) {
        co_return http::to_response(http::make_problem(
            409, "not-a-directory", "This is not a directory", "There is a file of that name."));
    }
    const Status made = workspace.value().make_directory(place.path);
    if (made.has_error()) {
        co_return http::to_response(placement_problem(made.error()));
    }
    co_return describe(workspace.value(), place.path, existed ? 200 : 201);
}

boost::asio::awaitable<http::Response> put_file(http::Request& request, FilePlace place) {
    auto workspace = use_workspace(request, *place.session);
    if (workspace.has_error()) {
        co_return std::move(workspace).error();
    }
    if (auto refused = refuse_input(*place.session, place.path)) {
        co_return std::move(*refused);
    }
    const std::string before = tag_of(workspace.value(), place.path);
    if (auto refused = check_conditions(request.headers, before)) {
        co_return std::move(*refused);
    }
    auto begun = workspace.value().begin_upload(place.path);
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
    const auto now = place.session->workspace();
    if (now.has_error()) {
        co_return http::to_response(http::problem_from(now.error()));
    }
    if (auto refused = check_conditions(request.headers, tag_of(now.value(), place.path))) {
        co_return std::move(*refused);
    }
    const Status committed = upload.commit();
    if (committed.has_error()) {
        co_return http::to_response(placement_problem(committed.error()));
    }
    co_return describe(now.value(), place.path, before.empty() ? 201 : 200);
}

/// A path that ends with a slash names a directory.
boost::asio::awaitable<http::Response> put(http::Request& request, SessionLookup::Session session) {
    std::string named = request.capture("path");
    const bool is_directory = named.size() > 1 && named.back() == '/';
    if (is_directory) {
        named.pop_back();
    }
    auto place = parse_place(std::move(session), named);
    if (place.has_error()) {
        co_return std::move(place).error();
    }
    if (is_directory) {
        http::Response made = co_await put_directory(request, std::move(place).value());
        co_return made;
    }
    http::Response answer = co_await put_file(request, std::move(place).value());
    co_return answer;
}

}  // namespace

void add_upload_routes(http::Router& router, const SessionLookup& lookup) {
    http::Route route(
        http::Access::kChange,
        "PUT",
        "/v1/sessions/{id}/files/{path...}",
        lookup.with_session(put));
    route.body_mode = http::BodyMode::kStreamed;
    route.body_bytes_max = limits::kUploadBytesMax;
    router.add(std::move(route));
}

}  // namespace cellkeep::api
