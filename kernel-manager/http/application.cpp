// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/application.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace cellkeep::http {

namespace {

Response refuse(Problem problem, const Request& request) {
    problem.instance = request.target.path;
    return to_response(problem);
}

}  // namespace

Application::Application(TokenAuth auth, HostGuard hosts)
    : auth_(std::move(auth)), hosts_(std::move(hosts)) {}

std::optional<Problem> Application::check_head(const Request& request) const {
    if (!hosts_.allows(request.headers.get("Host"))) {
        return make_problem(
            421,
            "The Host header must be localhost, 127.0.0.1, [::1] or a name given with "
            "--allow-host.");
    }
    const std::string_view coding = request.headers.get("Content-Encoding");
    if (!coding.empty() && !equals_ignoring_case(coding, "identity")) {
        return make_problem(415, "Send the body without a Content-Encoding.");
    }
    return std::nullopt;
}

Application::Admission Application::admit(Request& request, std::string_view target_text) const {
    auto target = parse_target(target_text);
    if (target.has_error()) {
        request.target.path = std::string(target_text.substr(0, target_text.find('?')));
        return {nullptr, refuse(make_problem(400, target.error().message()), request)};
    }
    request.target = std::move(target).value();
    if (auto problem = check_head(request)) {
        return {nullptr, refuse(std::move(*problem), request)};
    }
    Router::Match match = router_.match(request.method, request.target.segments);
    const bool open = match.route != nullptr && match.route->access == Access::kOpen;
    if (request.method == "OPTIONS" && (!match.allowed.empty() || request.target.path == "*")) {
        Response response = make_empty(204);
        response.headers.add("Allow", allow_value(match.allowed));
        return {nullptr, std::move(response)};
    }
    if (!open) {
        auto principal = auth_.authenticate(request);
        if (!principal) {
            return {
                nullptr,
                refuse(
                    make_problem(
                        401,
                        "Send the server's token: \"Authorization: Bearer TOKEN\" or "
                        "?token=TOKEN."),
                    request)};
        }
        request.principal = std::move(*principal);
    }
    if (match.route == nullptr && match.allowed.empty()) {
        return {nullptr, refuse(make_problem(404, "No such address on this server."), request)};
    }
    if (match.route == nullptr) {
        Response response = refuse(
            make_problem(405, "This address knows " + allow_value(match.allowed) + "."), request);
        response.headers.add("Allow", allow_value(match.allowed));
        return {nullptr, std::move(response)};
    }
    request.captures = std::move(match.captures);
    return {match.route, {}};
}

void Application::add_jupyter_prefix(std::string segment) {
    jupyter_prefixes_.push_back(std::move(segment));
}

void Application::finish(const Request& request, Response& response) const {
    const auto& segments = request.target.segments;
    if (response.status < 400 || segments.empty()) {
        return;
    }
    const auto found =
        std::find(jupyter_prefixes_.begin(), jupyter_prefixes_.end(), segments.front());
    if (found != jupyter_prefixes_.end()) {
        rewrite_for_jupyter(response);
    }
}

boost::asio::awaitable<Response> Application::run(const Route& route, Request& request) {
    Response response;
    try {
        response = co_await route.handler(request);
    } catch (const std::exception& failure) {
        response = to_response(make_problem(500, failure.what()));
    }
    if (response.status >= 400) {
        set_instance(response, request.target.path);
    }
    co_return response;
}

}  // namespace cellkeep::http
