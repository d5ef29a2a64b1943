// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/raised.hpp"

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/swerex/orders.hpp"

#include <utility>

namespace cellkeep::swerex {

namespace {

constexpr int kRaisedStatus = 511;

}  // namespace

http::Response raise(const char* class_path, const std::string& message, nlohmann::json extra) {
    const nlohmann::json raised = {
        {"message", message},
        {"class_path", class_path},
        {"traceback", ""},
        {"extra_info", std::move(extra)}};
    return http::make_json(kRaisedStatus, {{"swerexception", raised}});
}

http::Response refuse(const Error& error) {
    if (error.field() == kNotOffered) {
        return http::to_response(http::make_problem(501, std::string(error.reason())));
    }
    return http::to_response(http::problem_from(error));
}

}  // namespace cellkeep::swerex
