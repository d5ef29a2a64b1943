// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/file_answers.hpp"

#include "kernel-manager/http/problem.hpp"

#include <algorithm>

namespace cellkeep::agent {

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

}  // namespace cellkeep::agent
