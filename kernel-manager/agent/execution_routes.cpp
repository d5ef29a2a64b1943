// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/model.hpp"
#include "kernel-manager/agent/routes.hpp"
#include "kernel-manager/http/problem.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::agent {

namespace {

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// This server gives whole answers only. Whoever can take nothing else is told, not surprised.
std::optional<http::Problem> check_form(const http::Request& request) {
    const std::string_view accept = request.headers.get("Accept");
    const bool takes_json = accept.empty() || contains(accept, "application/json") ||
                            contains(accept, "*/*") || contains(accept, "application/*");
    if (!takes_json) {
        return http::make_problem(
            406, "Executions are answered as application/json only; streams are not offered yet.");
    }
    if (contains(request.headers.get("Prefer"), "respond-async")) {
        return http::make_problem(
            501, "Prefer: respond-async is not offered yet; send the request without it.");
    }
    return std::nullopt;
}

/// Removes its session whatever happens to the coroutine that holds it.
class OneShotSession {
 public:
    OneShotSession(session::Backend& backend, std::shared_ptr<session::Session> session)
        : backend_(backend), session_(std::move(session)) {}
    OneShotSession(const OneShotSession&) = delete;
    OneShotSession& operator=(const OneShotSession&) = delete;
    ~OneShotSession() {
        // Ignored: already gone (culled, deleted, shut down) is what we want.
        (void)backend_.remove(session_->id());
    }
    session::Session& operator*() const { return *session_; }

 private:
    session::Backend& backend_;
    std::shared_ptr<session::Session> session_;
};

http::Response answer(const Result<session::ExecutionResult>& result, bool outputs) {
    if (result.has_error()) {
        return http::to_response(http::problem_from(result.error()));
    }
    return http::make_json(
        200, to_json(result.value(), outputs ? Outputs::kInclude : Outputs::kOmit));
}

}  // namespace

Routes::Answer Routes::execute(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    if (auto problem = check_form(request)) {
        co_return http::to_response(*problem);
    }
    ParsedBody body = parse_body(request, EmptyBody::kRefused);
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    FieldErrors errors;
    ExecutionOrder order = parse_execution(body.value, session->info(), errors);
    if (!errors.empty()) {
        co_return http::to_response(invalid_body(std::move(errors)));
    }
    const auto result = co_await session->execute(std::move(order.request));
    co_return answer(result, order.outputs);
}

Routes::Answer Routes::get_execution(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    const auto result = session->find_execution(request.capture("exe"));
    if (!result) {
        co_return http::to_response(http::make_problem(
            404,
            "unknown-execution",
            "No such execution",
            "There is no finished execution " + request.capture("exe") +
                " in this session, or it is no longer remembered."));
    }
    const bool outputs = request.target.find_query("outputs") == "true";
    co_return http::make_json(200, to_json(*result, outputs ? Outputs::kInclude : Outputs::kOmit));
}

Routes::Answer Routes::execute_once(http::Request& request) {
    if (auto problem = check_form(request)) {
        co_return http::to_response(*problem);
    }
    ParsedBody body = parse_body(request, EmptyBody::kRefused);
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    FieldErrors errors;
    OneShotOrder order = parse_one_shot(body.value, offer(), errors);
    if (!errors.empty()) {
        co_return http::to_response(invalid_body(std::move(errors)));
    }
    order.options.owner = request.principal.name;
    const auto created = co_await backend_.create(std::move(order.options));
    if (created.has_error()) {
        co_return http::to_response(http::problem_from(created.error()));
    }
    const OneShotSession session(backend_, created.value());
    const auto result = co_await (*session).execute(std::move(order.execution.request));
    co_return answer(result, order.execution.outputs);
}

}  // namespace cellkeep::agent
