// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_failures.hpp"

#include "kernel-manager/http/message/problem.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::jupyter {

namespace {

http::Response unknown_kernel_name(const Error& error) {
    const std::string& name = error.message();
    const std::string why = error.hint().empty() ? "" : " Why: " + error.hint();
    return http::make_json(
        501,
        {{"message",
          "The '" + name +
              "' kernel is not available. Please pick another suitable kernel instead." + why},
         {"short_message", name + " not found"},
         {"reason", "Kernel not available"}});
}

}  // namespace

http::Response failure_response(const Error& error) {
    http::Problem problem = http::problem_from(error);
    if (error.code() == ErrorCode::kInvalidArgument) {
        problem.status = 400;
    }
    if (error.code() == ErrorCode::kLimitExceeded) {
        problem.status = 403;
        problem.title = "Resource Limit";
    }
    return http::to_response(problem);
}

http::Response start_failure_response(const Error& error) {
    return error.code() == ErrorCode::kNotFound ? unknown_kernel_name(error)
                                                : failure_response(error);
}

}  // namespace cellkeep::jupyter
