// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/refusals.hpp"

#include "kernel-manager/api/answers/refusal_problem.hpp"
#include "kernel-manager/api/bodies/session_update_body.hpp"
#include "kernel-manager/http/message/problem.hpp"

namespace cellkeep::api {

http::Response unknown_session(const http::Request& request) {
    return http::to_response(http::make_problem(
        404,
        "unknown-session",
        "No such session",
        "There is no session " + request.capture("id") + "; it may have ended."));
}

http::Response unknown_cursor() {
    return http::to_response(http::make_problem(
        400,
        "unknown-cursor",
        "The page cannot be found",
        "The execution named by \"after\" is no longer remembered; list from the start."));
}

http::Response unknown_execution(const http::Request& request) {
    return http::to_response(http::make_problem(
        404,
        "unknown-execution",
        "No such execution",
        "There is no execution " + request.capture("exe") +
            " here, or it is no longer remembered."));
}

http::Response refuse_execution(const Error& error, const session::Session* session) {
    if (error.code() == ErrorCode::kLimitExceeded && session != nullptr) {
        if (const auto refusal = session->refusal()) {
            return http::to_response(to_problem(*refusal));
        }
    }
    const bool of_key = error.field() == "idempotency_key";
    if (of_key && error.code() == ErrorCode::kNotFound) {
        return http::to_response(http::make_problem(
            410,
            "answer-forgotten",
            "The request has run and its answer is no longer kept",
            error.message() + ". " + error.hint()));
    }
    if (of_key && error.code() == ErrorCode::kInvalidArgument) {
        http::Problem problem = http::make_problem(
            422,
            "idempotency-key-reused",
            "The idempotency key belongs to another request",
            error.message() + ".");
        problem.errors.push_back({"/idempotency_key", "came before with another request"});
        return http::to_response(problem);
    }
    return http::to_response(refused_field(error));
}

http::Response answer_interrupt(const http::Request& request, const Status& interrupted) {
    if (interrupted.has_value()) {
        return http::make_empty(204);
    }
    if (interrupted.error().code() == ErrorCode::kNotFound) {
        return unknown_execution(request);
    }
    if (interrupted.error().code() == ErrorCode::kConflict) {
        return http::to_response(http::make_problem(
            409,
            "execution-finished",
            "There is nothing to interrupt",
            interrupted.error().message() + "."));
    }
    return http::to_response(http::problem_from(interrupted.error()));
}

}  // namespace cellkeep::api
