// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/problem.hpp"

#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <utility>

namespace cellkeep::http {

namespace {

constexpr std::string_view kMediaType = "application/problem+json";
/// When a client may try again after the server said that it is full.
constexpr int kRetryAfterSeconds = 5;

struct Known {
    int status;
    const char* kind;
    const char* title;
};

constexpr std::array kKnown = {
    Known{400, "malformed-request", "The request is malformed"},
    Known{401, "unauthorized", "A valid token is required"},
    Known{403, "forbidden", "This is not allowed"},
    Known{404, "not-found", "There is nothing here"},
    Known{405, "method-not-allowed", "This method is not allowed here"},
    Known{406, "not-acceptable", "No acceptable form of the answer"},
    Known{408, "request-timeout", "The request did not arrive in time"},
    Known{409, "conflict", "The state forbids it"},
    Known{413, "too-large", "The request is too large"},
    Known{415, "unsupported-media-type", "The body has an unsupported type"},
    Known{416, "range-not-satisfiable", "The range lies outside the file"},
    Known{417, "expectation-failed", "The expectation cannot be met"},
    Known{421, "wrong-host", "The Host header does not name this server"},
    Known{422, "invalid-request", "The request is not valid"},
    Known{426, "upgrade-required", "Another protocol version is required"},
    Known{429, "limit-reached", "A limit was reached"},
    Known{431, "headers-too-large", "The request head is too large"},
    Known{500, "internal-error", "The server failed"},
    Known{501, "not-offered", "This server does not offer it"},
    Known{502, "kernel-protocol", "The kernel answered nonsense"},
    Known{503, "unavailable", "The server cannot do it now"},
    Known{504, "timeout", "It took too long"},
    Known{505, "http-version", "This HTTP version is not supported"},
};

int status_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalidArgument:
            return 422;
        case ErrorCode::kNotFound:
            return 404;
        case ErrorCode::kConflict:
            return 409;
        case ErrorCode::kPermissionDenied:
            return 403;
        case ErrorCode::kLimitExceeded:
            return 429;
        case ErrorCode::kUnavailable:
        case ErrorCode::kCancelled:
            return 503;
        case ErrorCode::kTimeout:
            return 504;
        case ErrorCode::kProtocol:
            return 502;
        case ErrorCode::kSystem:
            return 500;
    }
    return 500;
}

}  // namespace

Problem make_problem(int status, std::string detail) {
    Problem problem;
    problem.status = status;
    problem.kind = "error";
    problem.title = "The request failed";
    problem.detail = std::move(detail);
    for (const Known& known : kKnown) {
        if (known.status == status) {
            problem.kind = known.kind;
            problem.title = known.title;
        }
    }
    if (status == 429 || status == 503) {
        problem.retry_after_seconds = kRetryAfterSeconds;
    }
    return problem;
}

Problem make_problem(int status, std::string kind, std::string title, std::string detail) {
    Problem problem = make_problem(status, std::move(detail));
    problem.kind = std::move(kind);
    problem.title = std::move(title);
    return problem;
}

Problem problem_from(const Error& error) {
    std::string detail = error.message();
    if (!error.hint().empty()) {
        detail += detail.empty() || detail.back() == '.' ? " " : ". ";
        detail += error.hint();
    }
    return make_problem(status_of(error.code()), std::move(detail));
}

nlohmann::json to_json(const Problem& problem) {
    nlohmann::json body = problem.extensions;
    body["type"] = "/problems/" + problem.kind;
    body["title"] = problem.title;
    body["status"] = problem.status;
    body["detail"] = problem.detail;
    body["instance"] = problem.instance;
    if (!problem.errors.empty()) {
        nlohmann::json& errors = body["errors"] = nlohmann::json::array();
        for (const FieldError& error : problem.errors) {
            errors.push_back({{"pointer", error.pointer}, {"message", error.message}});
        }
    }
    return body;
}

Response to_response(const Problem& problem) {
    Response response;
    response.status = problem.status;
    response.headers.add("Content-Type", std::string(kMediaType));
    if (problem.status == 401) {
        response.headers.add("WWW-Authenticate", "Bearer realm=\"cellkeep\"");
    }
    if (problem.retry_after_seconds) {
        response.headers.add("Retry-After", std::to_string(*problem.retry_after_seconds));
    }
    response.body = protocol::dump_json(to_json(problem));
    return response;
}

void set_instance(Response& response, std::string_view instance) {
    if (response.headers.get("Content-Type") != kMediaType) {
        return;
    }
    auto* text = std::get_if<std::string>(&response.body);
    if (text == nullptr) {
        return;
    }
    auto body = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (body.is_object() && body.value("instance", std::string()).empty()) {
        body["instance"] = instance;
        *text = protocol::dump_json(body);
    }
}

void rewrite_for_jupyter(Response& response) {
    const auto* text = std::get_if<std::string>(&response.body);
    if (text == nullptr || response.headers.get("Content-Type") != kMediaType) {
        return;
    }
    const auto problem = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!problem.is_object()) {
        return;
    }
    response.headers.set("Content-Type", "application/json");
    response.body = protocol::dump_json(
        {{"message", problem.value("detail", std::string())},
         {"reason", problem.value("title", std::string())}});
}

}  // namespace cellkeep::http
