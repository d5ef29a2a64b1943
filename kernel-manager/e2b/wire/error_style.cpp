// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/wire/error_style.hpp"

#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace cellkeep::e2b {

namespace {

/// Body of a problem (http/message/problem.hpp).
std::optional<nlohmann::json> problem_of(const http::Response& response) {
    const auto* text = std::get_if<std::string>(&response.body);
    if (text == nullptr || response.headers.get("Content-Type") != "application/problem+json") {
        return std::nullopt;
    }
    auto problem = protocol::parse_json_object(*text, "problem");
    return problem.has_value() ? std::optional(std::move(problem).value()) : std::nullopt;
}

std::string message_of(const nlohmann::json& problem) {
    std::string message = problem.value("detail", std::string());
    const auto errors = problem.find("errors");
    if (errors != problem.end() && errors->is_array() && !errors->empty()) {
        message += " (" + errors->front().value("pointer", std::string()) + " " +
                   errors->front().value("message", std::string()) + ")";
    }
    return message;
}

/// What E2B's API answers where this server's own says 422.
int status_for_e2b(int status) {
    return status == 422 ? 400 : status;
}

const char* error_code_of(int status) {
    switch (status) {
        case 429:
            return "sandbox_capacity_unavailable";
        case 503:
            return "sandbox_create_refused";
        case 504:
            return "sandbox_placement_timeout";
        case 500:
            return "internal_server_error";
        default:
            return nullptr;
    }
}

bool is_rpc(const http::Request& request) {
    // /e2b/ID/PORT/package.Service/Method
    const auto& segments = request.target.segments;
    return segments.size() == 5 &&
           (segments[3] == "process.Process" || segments[3] == "filesystem.Filesystem");
}

}  // namespace

std::string_view connect_code(int status) {
    switch (status) {
        case 400:
        case 405:
        case 413:
        case 415:
        case 422:
            return "invalid_argument";
        case 401:
            return "unauthenticated";
        case 403:
            return "permission_denied";
        case 404:
            return "not_found";
        case 409:
            return "already_exists";
        case 412:
            return "failed_precondition";
        case 429:
        case 507:
            return "resource_exhausted";
        case 501:
            return "unimplemented";
        case 502:
        case 503:
            return "unavailable";
        case 408:
        case 504:
            return "deadline_exceeded";
        default:
            return "internal";
    }
}

void rewrite_for_control(const http::Request& /*request*/, http::Response& response) {
    const auto problem = problem_of(response);
    if (!problem) {
        return;
    }
    response.status =
        problem->contains("error_code") ? response.status : status_for_e2b(response.status);
    nlohmann::json body = {{"code", response.status}, {"message", message_of(*problem)}};
    if (problem->contains("error_code")) {
        body["error_code"] = problem->at("error_code");
    } else if (const char* code = error_code_of(response.status)) {
        body["error_code"] = code;
        // A place may become free; everything else stays as it is.
        const bool soon = response.status == 429 || response.status == 503;
        response.headers.set("Should-Retry", soon ? "true" : "false");
    }
    response.headers.set("Content-Type", "application/json");
    response.body = protocol::dump_json(body);
}

void rewrite_for_sandbox(const http::Request& request, http::Response& response) {
    const auto problem = problem_of(response);
    if (!problem) {
        return;
    }
    const std::string message = message_of(*problem);
    nlohmann::json body = {{"message", message}};
    if (is_rpc(request)) {
        body["code"] = connect_code(response.status);
    } else {
        response.status = status_for_e2b(response.status);
        body["code"] = response.status;
    }
    response.headers.set("Content-Type", "application/json");
    response.body = protocol::dump_json(body);
}

http::Response sandbox_not_found(const http::Request& request) {
    return http::make_json(
        502,
        {{"sandboxId", request.capture("id")},
         {"message", "The sandbox was not found"},
         {"code", 502}});
}

}  // namespace cellkeep::e2b
