// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/session_routes.hpp"

#include "kernel-manager/api/answers/model.hpp"
#include "kernel-manager/api/answers/session_page.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/api/bodies/request_body.hpp"
#include "kernel-manager/api/bodies/session_update_body.hpp"
#include "kernel-manager/api/routes/branch_start.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_options.hpp"

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::api {

namespace {

/// An observer does not learn where the key to the kernel's sockets lies.
nlohmann::json shown(session::SessionInfo info, const http::Principal& principal) {
    if (!http::may_change(principal)) {
        info.connection_file.clear();
    }
    return to_json(info);
}

using LanguageChoice = BodyOrder<std::optional<std::string>>;  // nothing: none is named

/// What the body of an interrupt or a restart says; it may be empty.
boost::asio::awaitable<LanguageChoice> choose_language(
    http::Request& request, const session::Session& session) {
    OrderReader<std::optional<std::string>> read =
        [running = session.offered_languages()](const nlohmann::json& value, FieldErrors& errors) {
            return parse_language_choice(value, running, errors);
        };
    LanguageChoice choice = co_await read_order<std::optional<std::string>>(
        request, EmptyBody::kAllowed, std::move(read));
    co_return choice;
}

http::Response answer_created(const session::Session& made) {
    http::Response response = http::make_json(201, to_json(made.info()));
    response.headers.add("Location", "/v1/sessions/" + made.id());
    return response;
}

}  // namespace

void SessionRoutes::add_to(http::Router& router) {
    using http::Access;
    const auto whole = [this](auto member) {
        return [this, member](http::Request& request) { return (this->*member)(request); };
    };
    const auto one = [this](auto member) {
        return lookup_.with_session([this, member](http::Request& request, Session session) {
            return (this->*member)(request, std::move(session));
        });
    };
    const auto add = [&](Access access, const char* method, const char* pattern, auto handler) {
        http::Route route(access, method, pattern, std::move(handler));
        const bool has_body = route.method == "POST" || route.method == "PATCH";
        router.add(has_body ? std::move(route) : std::move(route).without_body());
    };
    add(Access::kRead, "GET", "/v1/sessions", whole(&SessionRoutes::list));
    add(Access::kChange, "POST", "/v1/sessions", whole(&SessionRoutes::create));
    add(Access::kRead, "GET", "/v1/sessions/{id}", one(&SessionRoutes::get));
    add(Access::kChange, "PATCH", "/v1/sessions/{id}", one(&SessionRoutes::update));
    add(Access::kChange, "DELETE", "/v1/sessions/{id}", one(&SessionRoutes::remove));
    add(Access::kChange, "POST", "/v1/sessions/{id}/interrupt", one(&SessionRoutes::interrupt));
    add(Access::kChange, "POST", "/v1/sessions/{id}/restart", one(&SessionRoutes::restart));
}

SessionRoutes::Answer SessionRoutes::create(http::Request& request) {
    OrderReader<SessionOrder> read = [offer = offer_of(backend_)](
                                         const nlohmann::json& value, FieldErrors& errors) {
        return parse_session_order(value, offer, errors);
    };
    auto body = co_await read_order<SessionOrder>(request, EmptyBody::kAllowed, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    SessionOrder order = std::move(body.order);
    if (order.from) {
        http::Response branched = co_await go_on(request, std::move(order));
        co_return branched;
    }
    session::SessionOptions options = std::move(order.options);
    options.owner = request.principal.name;
    const auto created = co_await backend_.create(std::move(options));
    if (created.has_error()) {
        co_return http::to_response(refused_field(created.error()));
    }
    co_return answer_created(*created.value());
}

/// A branch of the session that the order names.
SessionRoutes::Answer SessionRoutes::go_on(http::Request& request, SessionOrder order) {
    const Session parent = lookup_.find(request.principal, order.from->session);
    Session same = parent;
    StateOrder wanted = *order.from;
    const BranchStart start = co_await find_state(std::move(same), std::move(wanted));
    if (start.problem) {
        co_return http::to_response(*start.problem);
    }
    session::BranchOrder branch;
    branch.session = parent->id();
    branch.checkpoint = start.checkpoint;
    branch.label = std::move(order.label);
    branch.reseed = order.from->reseed;
    const auto made = co_await backend_.branch(std::move(branch));
    if (made.has_error()) {
        co_return http::to_response(explain_refusal(made.error(), *parent, start.checkpoint));
    }
    co_return answer_created(*made.value());
}

SessionRoutes::Answer SessionRoutes::list(http::Request& request) {
    PageQuery query;
    if (const auto problem = parse_page_query(request.target, query)) {
        co_return http::to_response(*problem);
    }
    std::vector<session::SessionInfo> visible;
    for (const auto& session : backend_.list()) {
        if (session::SessionInfo info = session->info();
            http::may_see(request.principal, info.owner)) {
            visible.push_back(std::move(info));
        }
    }
    const SessionPage page = take_page(std::move(visible), query);
    nlohmann::json sessions = nlohmann::json::array();
    for (const session::SessionInfo& info : page.sessions) {
        sessions.push_back(shown(info, request.principal));
    }
    nlohmann::json next = nullptr;
    if (!page.next.empty()) {
        next = page.next;
    }
    http::Response response =
        http::make_json(200, {{"sessions", std::move(sessions)}, {"next", std::move(next)}});
    if (!page.next.empty()) {
        response.headers.add("Link", next_link(request.target, page.next));
    }
    co_return response;
}

SessionRoutes::Answer SessionRoutes::get(http::Request& request, Session session) {
    co_return http::make_json(200, shown(session->info(), request.principal));
}

SessionRoutes::Answer SessionRoutes::update(http::Request& request, Session session) {
    // A body of either type means the same here: a merge patch (RFC 7396).
    const std::string_view type = request.headers.get("Content-Type");
    if (http::equals_ignoring_case(
            type.substr(0, type.find(';')), "application/merge-patch+json")) {
        request.headers.set("Content-Type", "application/json");
    }
    OrderReader<session::SessionUpdate> read =
        [present = session->info()](const nlohmann::json& value, FieldErrors& errors) {
            return parse_session_update(value, present, errors);
        };
    auto body =
        co_await read_order<session::SessionUpdate>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    const Status updated = session->update(body.order);
    if (updated.has_error()) {
        co_return http::to_response(refused_field(updated.error()));
    }
    co_return http::make_json(200, to_json(session->info()));
}

SessionRoutes::Answer SessionRoutes::remove(http::Request& request, Session session) {
    const Status removed = backend_.remove(session->id());
    if (removed.has_error() && removed.error().code() == ErrorCode::kNotFound) {
        http::Response gone = co_await history_.answer_session(request);
        co_return gone;
    }
    if (removed.has_error()) {
        co_return http::to_response(http::problem_from(removed.error()));
    }
    co_await backend_.wait_until_gone(session->id());
    co_return http::make_empty(204);
}

SessionRoutes::Answer SessionRoutes::interrupt(http::Request& request, Session session) {
    const LanguageChoice choice = co_await choose_language(request, *session);
    if (choice.problem) {
        co_return http::to_response(*choice.problem);
    }
    session->touch();
    const Status interrupted =
        choice.order ? session->interrupt_language(*choice.order) : session->interrupt();
    if (interrupted.has_error()) {
        co_return http::to_response(refused_field(interrupted.error()));
    }
    co_return http::make_empty(204);
}

SessionRoutes::Answer SessionRoutes::restart(http::Request& request, Session session) {
    const LanguageChoice choice = co_await choose_language(request, *session);
    if (choice.problem) {
        co_return http::to_response(*choice.problem);
    }
    session->touch();
    Status restarted = ok();
    if (choice.order) {
        restarted = co_await session->restart_language(*choice.order);
    } else {
        restarted = co_await session->restart();
    }
    if (restarted.has_error()) {
        co_return http::to_response(refused_field(restarted.error()));
    }
    co_return http::make_json(200, to_json(session->info()));
}

}  // namespace cellkeep::api
