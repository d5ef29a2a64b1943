// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/file_routes.hpp"

#include "kernel-manager/api/answers/file_answers.hpp"
#include "kernel-manager/api/answers/file_watch.hpp"
#include "kernel-manager/api/routes/file_place.hpp"
#include "kernel-manager/execution/artifacts/media_type.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/range.hpp"
#include "protocol/json.hpp"
#include "protocol/support/next_turn.hpp"
#include "sandbox/workspace/workspace.hpp"
#include "sandbox/workspace/workspace_listing.hpp"
#include "sandbox/workspace/workspace_removal.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::api {

namespace {

/// Entries of a directory that are read, described or removed before other work has its turn.
constexpr std::size_t kFileSliceEntries = 256;

/// The whole file or a range of it.
http::Response send_file(
    const http::Request& request, const std::string& path, sandbox::Workspace::OpenedFile file) {
    const std::string tag = etag(file.state);
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
        return refused;
    }
    http::Response response;
    response.headers.add("Content-Type", std::string(session::media_type_of(path)));
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
    return response;
}

http::Response removal_problem(const Error& error) {
    switch (error.code()) {
        case ErrorCode::kConflict:
            return http::to_response(http::make_problem(
                409,
                "not-empty",
                "The directory is not empty",
                error.message() + "; ?recursive=true removes it with what is in it."));
        case ErrorCode::kLimitExceeded:
            return http::to_response(http::make_problem(
                409,
                "too-many-entries",
                "There is too much in it to remove at once",
                error.message() + "; send the request again to go on."));
        default:
            return file_problem(error);
    }
}

http::Response list_problem(const Error& error) {
    if (error.code() == ErrorCode::kLimitExceeded) {
        return http::to_response(http::make_problem(
            413,
            "too-many-entries",
            "The directory is too large to be listed",
            error.message() + "; list it in code, or take files.tar.zst."));
    }
    return file_problem(error);
}

/// nullopt: it is neither true nor false.
std::optional<bool> read_recursive(const http::Request& request) {
    const std::string text = request.target.find_query("recursive").value_or("false");
    return text == "true" || text == "false" ? std::optional(text == "true") : std::nullopt;
}

boost::asio::awaitable<http::Response> list_files(http::Request& request, FilePlace place) {
    if (!read_recursive(request)) {
        co_return http::to_response(http::make_problem(400, "recursive must be true or false."));
    }
    const auto events = asks_for_events(request);
    if (!events) {
        co_return http::to_response(http::make_problem(400, "watch must be true or false."));
    }
    if (*events) {
        co_return co_await watch_files(request, place.session, place.path);
    }
    auto workspace = use_workspace(request, *place.session);
    if (workspace.has_error()) {
        co_return std::move(workspace).error();
    }
    auto opened = sandbox::DirectoryListing::open(workspace.value(), place.path);
    if (opened.has_error()) {
        co_return list_problem(opened.error());
    }
    sandbox::DirectoryListing listing = std::move(opened).value();
    while (true) {
        const auto more = listing.read_some(kFileSliceEntries);
        if (more.has_error()) {
            co_return list_problem(more.error());
        }
        if (!more.value()) {
            break;
        }
        co_await next_turn();
    }
    std::string text = "[";
    std::size_t described = 0;
    const std::vector<sandbox::Entry> entries = listing.take();
    for (const sandbox::Entry& entry : entries) {
        if (++described % kFileSliceEntries == 0) {
            co_await next_turn();
        }
        text +=
            (text.size() == 1 ? "" : ",") + protocol::dump_json(entry_json(*place.session, entry));
    }
    http::Response response = http::make_json(200, nlohmann::json::object());
    response.body = "{\"entries\":" + std::move(text) +
                    "],\"path\":" + protocol::dump_json(nlohmann::json(place.path)) + "}";
    co_return response;
}

boost::asio::awaitable<http::Response> get_file(http::Request& request, FilePlace place) {
    auto workspace = use_workspace(request, *place.session);
    if (workspace.has_error()) {
        co_return std::move(workspace).error();
    }
    auto opened = open_file(*place.session, workspace.value(), place.path);
    if (opened.has_error()) {
        co_return file_problem(opened.error());
    }
    const std::string tag = etag(opened.value().state);
    const std::string* known = request.headers.find("If-None-Match");
    const std::string* wanted = request.headers.find("If-Match");
    if (wanted != nullptr && !names_tag(*wanted, tag, TagComparison::kStrong)) {
        co_return *check_conditions(request.headers, tag);
    }
    if (known != nullptr && names_tag(*known, tag, TagComparison::kWeak)) {
        http::Response unchanged = http::make_empty(304);
        unchanged.headers.add("ETag", tag);
        co_return unchanged;
    }
    co_return send_file(request, place.path, std::move(opened).value());
}

boost::asio::awaitable<Status> remove_one(sandbox::Workspace workspace, std::string path) {
    co_return workspace.remove(path);
}

boost::asio::awaitable<Status> remove_in_slices(sandbox::Workspace workspace, std::string path) {
    auto begun = sandbox::Removal::begin(workspace, path);
    if (begun.has_error()) {
        co_return std::move(begun).error();
    }
    // From here on the workspace may be gone: the removal has what it needs.
    sandbox::Removal removal = std::move(begun).value();
    while (true) {
        const auto more = removal.remove_some(kFileSliceEntries);
        if (more.has_error()) {
            co_return more.error();
        }
        if (!more.value()) {
            co_return ok();
        }
        co_await next_turn();
    }
}

boost::asio::awaitable<http::Response> remove_file(http::Request& request, FilePlace place) {
    const auto recursive = read_recursive(request);
    if (!recursive) {
        co_return http::to_response(http::make_problem(400, "recursive must be true or false."));
    }
    auto workspace = use_workspace(request, *place.session);
    if (workspace.has_error()) {
        co_return std::move(workspace).error();
    }
    if (auto refused = refuse_input(*place.session, place.path)) {
        co_return std::move(*refused);
    }
    std::string tag;
    if (const auto state = workspace.value().state(place.path); state.has_value()) {
        tag = etag(state.value());
    }
    if (auto refused = check_conditions(request.headers, tag)) {
        co_return std::move(*refused);
    }
    auto work = *recursive ? remove_in_slices(workspace.value(), place.path)
                           : remove_one(workspace.value(), place.path);
    const Status removed = co_await std::move(work);
    if (removed.has_error()) {
        co_return removal_problem(removed.error());
    }
    co_return http::make_empty(204);
}

}  // namespace

void add_file_routes(http::Router& router, const SessionLookup& lookup) {
    using http::Access;
    const auto add = [&](Access access, const char* method, PathFrom from, FileHandler handler) {
        std::string pattern = "/v1/sessions/{id}/files";
        if (from == PathFrom::kAddress) {
            pattern += "/{path...}";
        }
        http::Route route(
            access, method, std::move(pattern), with_place(lookup, from, std::move(handler)));
        router.add(std::move(route).without_body());
    };
    add(Access::kRead, "GET", PathFrom::kQuery, list_files);
    add(Access::kRead, "GET", PathFrom::kAddress, get_file);
    add(Access::kChange, "DELETE", PathFrom::kAddress, remove_file);
}

}  // namespace cellkeep::api
