// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/model.hpp"
#include "kernel-manager/agent/routes.hpp"
#include "kernel-manager/http/problem.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace cellkeep::agent {

namespace {

/// A page number: digits only, 1 to kPageSessionsMax.
std::optional<std::size_t> parse_limit(const std::string& text) {
    std::size_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, value);
    if (failed != std::errc() || stop != end || value < 1 || value > kPageSessionsMax) {
        return std::nullopt;
    }
    return value;
}

}  // namespace

Routes::Answer Routes::create_session(http::Request& request) {
    ParsedBody body = parse_body(request, EmptyBody::kAllowed);
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    FieldErrors errors;
    session::SessionOptions options = parse_session_options(body.value, offer(), errors);
    if (!errors.empty()) {
        co_return http::to_response(invalid_body(std::move(errors)));
    }
    options.owner = request.principal.name;
    const auto created = co_await backend_.create(std::move(options));
    if (created.has_error()) {
        co_return http::to_response(http::problem_from(created.error()));
    }
    http::Response response = http::make_json(201, to_json(created.value()->info()));
    response.headers.add("Location", "/v1/sessions/" + created.value()->id());
    co_return response;
}

Routes::Answer Routes::list_sessions(http::Request& request) {
    std::size_t limit = kPageSessionsDefault;
    if (const auto text = request.target.find_query("limit")) {
        const auto parsed = parse_limit(*text);
        if (!parsed) {
            co_return http::to_response(http::make_problem(
                400, "limit must be a number from 1 to " + std::to_string(kPageSessionsMax) + "."));
        }
        limit = *parsed;
    }
    std::vector<session::SessionInfo> visible;
    for (const auto& session : backend_.list()) {
        if (session::SessionInfo info = session->info(); may_see(request.principal, info)) {
            visible.push_back(std::move(info));
        }
    }
    std::size_t first = 0;
    if (const auto after = request.target.find_query("after")) {
        const auto found = std::find_if(visible.begin(), visible.end(), [&after](const auto& info) {
            return info.id == *after;
        });
        if (found == visible.end()) {
            co_return http::to_response(http::make_problem(
                400,
                "unknown-cursor",
                "The page cannot be found",
                "The session named by \"after\" has ended; list from the start."));
        }
        first = static_cast<std::size_t>(found - visible.begin()) + 1;
    }
    const std::size_t last = std::min(visible.size(), first + limit);
    nlohmann::json sessions = nlohmann::json::array();
    for (std::size_t i = first; i < last; ++i) {
        sessions.push_back(to_json(visible[i]));
    }
    nlohmann::json next = nullptr;
    if (last < visible.size() && last > first) {
        next = visible[last - 1].id;
    }
    co_return http::make_json(200, {{"sessions", std::move(sessions)}, {"next", std::move(next)}});
}

Routes::Answer Routes::get_session(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    co_return http::make_json(200, to_json(session->info()));
}

Routes::Answer Routes::remove_session(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    const Status removed = backend_.remove(session->id());
    if (removed.has_error() && removed.error().code() == ErrorCode::kNotFound) {
        co_return unknown_session(request);
    }
    if (removed.has_error()) {
        co_return http::to_response(http::problem_from(removed.error()));
    }
    co_return http::make_empty(204);
}

Routes::Answer Routes::interrupt(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    session->touch();
    const Status interrupted = session->interrupt();
    if (interrupted.has_error()) {
        co_return http::to_response(http::problem_from(interrupted.error()));
    }
    co_return http::make_empty(204);
}

Routes::Answer Routes::restart(http::Request& request) {
    const auto session = find_session(request);
    if (session == nullptr) {
        co_return unknown_session(request);
    }
    session->touch();
    const Status restarted = co_await session->restart();
    if (restarted.has_error()) {
        co_return http::to_response(http::problem_from(restarted.error()));
    }
    co_return http::make_json(200, to_json(session->info()));
}

}  // namespace cellkeep::agent
