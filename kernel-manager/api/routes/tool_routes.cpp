// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/tool_routes.hpp"

#include "kernel-manager/api/answers/refusals.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/api/bodies/tool_body.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <utility>

namespace cellkeep::api {

namespace {

using Answer = boost::asio::awaitable<http::Response>;

http::Response settle_call(const http::Request& request, const Status& given) {
    if (given.has_value()) {
        return http::make_empty(204);
    }
    if (given.error().code() == ErrorCode::kNotFound) {
        return http::to_response(http::make_problem(
            404,
            "unknown-tool-call",
            "There is no such tool call",
            "Code of this execution has not made the call " + request.capture("call") + "."));
    }
    if (given.error().code() == ErrorCode::kLimitExceeded) {
        return http::to_response(
            http::make_problem(413, given.error().message() + ". " + given.error().hint()));
    }
    return http::to_response(http::problem_from(given.error()));
}

Answer answer_call(http::Request& request, SessionLookup::Session session) {
    OrderReader<session::ToolAnswer> read = parse_tool_answer;
    auto body =
        co_await read_order<session::ToolAnswer>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    const auto execution = session->find_execution(request.capture("exe"));
    if (!execution) {
        co_return unknown_execution(request);
    }
    co_return settle_call(
        request, execution->answer_tool_call(request.capture("call"), body.order));
}

}  // namespace

void add_tool_routes(http::Router& router, const SessionLookup& lookup) {
    router.add(http::Route(
        http::Access::kChange,
        "POST",
        "/v1/sessions/{id}/executions/{exe}/tool_calls/{call}",
        lookup.with_session(answer_call)));
}

}  // namespace cellkeep::api
