// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/application.hpp"

#include "kernel-manager/http/access/host_field.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace cellkeep::http {

namespace {

Response refuse_request(Problem problem, const Request& request) {
    problem.instance = request.target.path;
    return to_response(problem);
}

/// Without the token that may be in a path.
std::string hide_token(std::string path) {
    static constexpr std::string_view kMark = "/token/";
    const std::size_t at = path.find(kMark);
    if (at != std::string::npos) {
        const std::size_t from = at + kMark.size();
        path.replace(from, path.find('/', from) - from, "-");
    }
    return path;
}

/// "/token/TOKEN/rest" becomes "/rest?token=TOKEN".
void take_token_from_path(Target& target) {
    auto& segments = target.segments;
    if (segments.size() < 2 || segments[0] != "token") {
        return;
    }
    target.query.insert_or_assign("token", segments[1]);
    segments.erase(segments.begin(), segments.begin() + 2);
    if (segments.size() == 1 && segments.front().empty()) {
        segments.clear();
    }
    const std::string hidden = hide_token(target.path);
    // The word may have been sent in percent codes.
    target.path = hidden == target.path ? std::string("/token/-") : hidden;
}

Problem read_only_problem() {
    return make_problem(
        403,
        "read-only-role",
        "This role may only read",
        "An observer may read sessions, executions and files, and may change, run or connect to "
        "nothing. Send the token of an agent or of the administrator.");
}

bool changes_something(const Request& request) {
    return request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS";
}

}  // namespace

Application::Application(TokenAuth auth, HostGuard hosts)
    : auth_(std::move(auth)), hosts_(std::move(hosts)) {}

std::optional<Problem> Application::check_head(const Request& request) const {
    if (auto fault = host_fault(request.headers, request.target.authority)) {
        return make_problem(400, std::move(*fault));
    }
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
        request.target.path = hide_token(std::string(target_text.substr(0, target_text.find('?'))));
        return {nullptr, refuse_request(make_problem(400, target.error().message()), request)};
    }
    request.target = std::move(target).value();
    if (auto problem = check_head(request)) {
        return {nullptr, refuse_request(std::move(*problem), request)};
    }
    if (!doorway_.by_host || !doorway_.by_host(request)) {
        if (auto answer = enter_base(request, target_text)) {
            return {nullptr, std::move(*answer)};
        }
        if (doorway_.by_header) {
            doorway_.by_header(request);
        }
    }
    Router::Match match = router_.match(request.method, request.target.segments);
    const bool open = match.route != nullptr && match.route->access == Access::kOpen;
    if (request.method == "OPTIONS" && match.route == nullptr &&
        (!match.allowed.empty() || request.target.path == "*")) {
        Response response = make_empty(204);
        response.headers.add("Allow", allow_value(match.allowed));
        return {nullptr, std::move(response)};
    }
    if (!open) {
        if (auto refusal = check_caller(request)) {
            return {nullptr, std::move(*refusal)};
        }
    }
    if (match.route == nullptr && match.allowed.empty()) {
        return {
            nullptr, refuse_request(make_problem(404, "No such address on this server."), request)};
    }
    if (match.route == nullptr) {
        Response response = refuse_request(
            make_problem(405, "This address knows " + allow_value(match.allowed) + "."), request);
        response.headers.add("Allow", allow_value(match.allowed));
        return {nullptr, std::move(response)};
    }
    if (match.route->access == Access::kChange && !may_change(request.principal)) {
        return {nullptr, refuse_request(read_only_problem(), request)};
    }
    request.captures = std::move(match.captures);
    request.work_thread = work_thread_.get();
    return {match.route, {}};
}

std::optional<Response> Application::enter_base(
    Request& request, std::string_view target_text) const {
    if (request.target.path == "*") {
        return std::nullopt;
    }
    const BaseUrl::Place place = base_.enter(request.target);
    if (place == BaseUrl::Place::kInside) {
        take_token_from_path(request.target);
        if (origins_.is_preflight(request)) {
            return OriginPolicy::answer_preflight();
        }
        return std::nullopt;
    }
    if (place == BaseUrl::Place::kBare && !changes_something(request)) {
        Response response = make_empty(302);
        const std::size_t query = std::min(target_text.find('?'), target_text.size());
        response.headers.add("Location", base_.text() + std::string(target_text.substr(query)));
        return response;
    }
    return refuse_request(
        make_problem(404, "Everything here is below " + base_.text() + "."), request);
}

std::optional<Principal> Application::identify(const Request& request, bool& by_header) const {
    const auto& segments = request.target.segments;
    const auto own = segments.empty() ? credentials_.end() : credentials_.find(segments.front());
    if (own != credentials_.end()) {
        const auto found = own->second(request);
        by_header = found.has_value() && found->by_header;
        return found ? std::optional(found->principal) : std::nullopt;
    }
    auto principal = auth_.authenticate(request);
    by_header = principal.has_value() && TokenAuth::uses_header(request);
    if (!principal && trust_same_user_ && request.same_user_peer) {
        principal = Principal{std::string(kAdminName), Role::kAdmin};
    }
    return principal;
}

std::optional<Response> Application::check_caller(Request& request) const {
    bool by_header = false;
    auto principal = identify(request, by_header);
    if (!principal) {
        return refuse_request(
            make_problem(
                401,
                "Send a token of this server: \"Authorization: Bearer TOKEN\" or ?token=TOKEN."),
            request);
    }
    const bool guarded = changes_something(request) || request.headers.find("Upgrade") != nullptr;
    if (guarded && !by_header && !origins_.admits(request)) {
        return refuse_request(
            make_problem(
                403,
                "A page of another origin may not do this. Start the server with --allow-origin " +
                    std::string(request.headers.get("Origin")) +
                    ", or authenticate with an Authorization header."),
            request);
    }
    request.principal = std::move(*principal);
    return std::nullopt;
}

void Application::add_jupyter_prefix(std::string segment) {
    set_error_style(std::move(segment), [](const Request& /*request*/, Response& response) {
        rewrite_for_jupyter(response);
    });
}

void Application::set_error_style(std::string segment, ErrorStyle style) {
    error_styles_.insert_or_assign(std::move(segment), std::move(style));
}

void Application::set_credentials(std::string segment, Credentials find) {
    credentials_.insert_or_assign(std::move(segment), std::move(find));
}

void Application::set_challenge(
    std::string segment, std::function<std::string(const Request&)> parameters) {
    challenged_segment_ = std::move(segment);
    challenge_parameters_ = std::move(parameters);
}

void Application::add_challenge(const Request& request, Response& response) const {
    const auto& segments = request.target.segments;
    if (response.status != 401 || segments.empty() || !challenge_parameters_ ||
        segments.front() != challenged_segment_) {
        return;
    }
    const std::string challenge(response.headers.get("WWW-Authenticate"));
    response.headers.set("WWW-Authenticate", challenge + ", " + challenge_parameters_(request));
}

void Application::finish(const Request& request, Response& response) const {
    if (response.foreign) {
        return;
    }
    origins_.add_headers(request, response);
    add_challenge(request, response);
    if (const std::string* location = response.headers.find("Location")) {
        response.headers.set("Location", base_.qualify(*location));
    }
    const auto& segments = request.target.segments;
    if (response.status < 400 || segments.empty()) {
        return;
    }
    if (const auto style = error_styles_.find(segments.front()); style != error_styles_.end()) {
        style->second(request, response);
    }
}

boost::asio::awaitable<Response> Application::run(const Route& route, Request& request) {
    Response response;
    try {
        response = co_await route.handler(request);
    } catch (const std::exception& failure) {
        response = to_response(make_problem(500, failure.what()));
    }
    if (response.status >= 400 && !response.foreign) {
        set_instance(response, request.target.path);
    }
    co_return response;
}

}  // namespace cellkeep::http
