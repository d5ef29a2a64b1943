// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/file_answers.hpp"

#include "kernel-manager/api/answers/model.hpp"

#include <algorithm>

namespace cellkeep::api {

std::string etag(const sandbox::FileState& state) {
    return "\"" + std::to_string(state.changed) + "-" + std::to_string(state.inode) + "-" +
           std::to_string(state.bytes) + "\"";
}

bool names_tag(std::string_view list, std::string_view tag, TagComparison comparison) {
    if (tag.empty()) {
        return false;
    }
    // Our own tags hold no comma.
    while (!list.empty()) {
        std::string_view one = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), one.size() + 1));
        while (!one.empty() && (one.front() == ' ' || one.front() == '\t')) {
            one.remove_prefix(1);
        }
        while (!one.empty() && (one.back() == ' ' || one.back() == '\t')) {
            one.remove_suffix(1);
        }
        if (one.starts_with("W/") && comparison == TagComparison::kWeak) {
            one.remove_prefix(2);
        }
        if (one == "*" || one == tag) {
            return true;
        }
    }
    return false;
}

std::optional<http::Response> check_conditions(
    const http::Headers& headers, const std::string& tag) {
    const std::string* match = headers.find("If-Match");
    const std::string* none = headers.find("If-None-Match");
    std::string why;
    if (match != nullptr && !names_tag(*match, tag, TagComparison::kStrong)) {
        why = tag.empty() ? "There is no such file." : "The file has changed: it is now " + tag;
    } else if (none != nullptr && names_tag(*none, tag, TagComparison::kWeak)) {
        why = "There is such a file already.";
    }
    if (why.empty()) {
        return std::nullopt;
    }
    http::Response refused = http::to_response(
        http::make_problem(412, "precondition-failed", "A condition does not hold", why));
    if (!tag.empty()) {
        refused.headers.add("ETag", tag);
    }
    return refused;
}

http::Response bad_path(const Error& error) {
    return http::to_response(
        http::make_problem(400, "bad-path", "The path is not allowed", error.message()));
}

namespace {

http::Problem to_problem(const Error& error) {
    switch (error.code()) {
        case ErrorCode::kNotFound:
            return http::make_problem(404, "unknown-file", "No such file", error.message());
        case ErrorCode::kInvalidArgument:
            return http::make_problem(
                409, "not-a-file", "This is not a plain file", error.message());
        case ErrorCode::kLimitExceeded:
            return http::make_problem(
                413, "workspace-full", "The workspace has no room for it", error.message());
        default:
            return http::problem_from(error);
    }
}

}  // namespace

http::Response file_problem(const Error& error) {
    return http::to_response(to_problem(error));
}

std::optional<http::Response> refuse_input(
    const session::Session& session, const std::string& path) {
    for (const auto& [place, name] : session.inputs()) {
        if (place == path || place.starts_with(path + "/")) {
            return http::to_response(http::make_problem(
                409,
                "read-only-input",
                "A read-only input is mounted there",
                place + " is the operator's " + name +
                    " for as long as the session lives; use another path."));
        }
    }
    return std::nullopt;
}

Result<sandbox::Workspace::OpenedFile> open_file(
    const session::Session& session, const sandbox::Workspace& workspace, const std::string& path) {
    return session.inputs().contains(path) ? session.open_input(path)
                                           : workspace.open_for_reading(path);
}

nlohmann::json entry_json(const session::Session& session, sandbox::Entry entry) {
    const bool is_input = session.inputs().contains(entry.path);
    if (is_input) {
        // What the workspace has there is the place of the mount.
        if (const auto input = session.open_input(entry.path); input.has_value()) {
            entry.kind = sandbox::EntryKind::kFile;
            entry.bytes = input.value().bytes;
            entry.modified = input.value().modified;
        }
    }
    nlohmann::json shown = to_json(entry);
    if (is_input) {
        shown["read_only"] = true;
    }
    return shown;
}

http::Problem placement_problem(const Error& error) {
    if (error.code() == ErrorCode::kNotFound) {
        return http::make_problem(
            409, "not-a-directory", "A part of the path is not a directory", error.message());
    }
    return to_problem(error);
}

std::optional<http::Problem> find_file_problem(const Error& error) {
    constexpr std::string_view kFiles = "files/";
    const std::string& field = error.field();
    if (!field.starts_with(kFiles) || field.find('/', kFiles.size()) != std::string::npos) {
        return std::nullopt;
    }
    http::Problem problem = placement_problem(error);
    problem.errors.push_back({"/" + field, std::string(error.reason())});
    return problem;
}

}  // namespace cellkeep::api
