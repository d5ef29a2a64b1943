// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_failures.hpp"

#include "kernel-manager/http/message/problem.hpp"

namespace cellkeep::jupyter {

http::Response contents_failure(const Error& error) {
    const http::Problem plain = http::problem_from(error);
    switch (error.code()) {
        case ErrorCode::kInvalidArgument:
            return http::to_response(http::make_problem(400, plain.detail));
        case ErrorCode::kLimitExceeded:
            return http::to_response(http::make_problem(413, plain.detail));
        default:
            return http::to_response(plain);
    }
}

}  // namespace cellkeep::jupyter
