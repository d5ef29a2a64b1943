// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/refusals.hpp"

#include "kernel-manager/http/message/problem.hpp"

namespace cellkeep::e2b {

http::Response refuse(const Error& error) {
    if (error.code() == ErrorCode::kUnavailable && error.message().starts_with("This server")) {
        return http::to_response(http::make_problem(501, error.message()));
    }
    return http::to_response(http::problem_from(error));
}

http::Response no_sandbox(const http::Request& request) {
    return http::to_response(
        http::make_problem(404, "sandbox " + request.capture("id") + " not found"));
}

}  // namespace cellkeep::e2b
