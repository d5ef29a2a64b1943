// SPDX-License-Identifier: Apache-2.0
//
// Everything that goes wrong, as the client sees it: an RFC 9457 problem, application/problem+json.
// Never an HTML page, never a stack trace.
#pragma once

#include "kernel-manager/http/message/response.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

/// One thing wrong in a request body. The pointer is an RFC 6901 JSON pointer; "" is the whole.
struct FieldError {
    std::string pointer;
    std::string message;
};

struct Problem {
    int status = 500;
    std::string kind;  // stable slug: type is "/problems/<kind>"
    std::string title;
    std::string detail;    // one sentence, with the fix if there is one
    std::string instance;  // the request's path; filled in by the application
    std::vector<FieldError> errors;
    std::optional<int> retry_after_seconds;
    /// Members of this kind of problem (RFC 9457, section 3.2): an object. The standard ones win.
    nlohmann::json extensions = nlohmann::json::object();
};

/// kind and title by status: "not-found", "Not found" …
Problem make_problem(int status, std::string detail);
Problem make_problem(int status, std::string kind, std::string title, std::string detail);

/// How a failure inside looks outside: kNotFound 404, kConflict 409, kLimitExceeded 429,
/// kInvalidArgument 422, kPermissionDenied 403, kUnavailable 503, kTimeout 504, kCancelled 503,
/// kProtocol 502, kSystem 500.
Problem problem_from(const Error& error);

/// Its members, as in a response.
nlohmann::json to_json(const Problem& problem);

Response to_response(const Problem& problem);

/// Fills in the instance of a response that is a problem without one; leaves every other alone.
void set_instance(Response& response, std::string_view instance);

/// Turns a response that is a problem into what Jupyter clients read, and leaves every other alone:
/// {"message": detail, "reason": title} as application/json.
void rewrite_for_jupyter(Response& response);

}  // namespace cellkeep::http
