// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes.hpp"

#include "kernel-manager/api/docs.hpp"
#include "kernel-manager/api/openapi.hpp"
#include "kernel-manager/http/problem.hpp"

#include <utility>

namespace cellkeep::agent {

Routes::Routes(session::SessionService& backend, History& history, std::string version)
    : backend_(backend),
      history_(history),
      version_(std::move(version)),
      executions_(backend, history) {}

void Routes::add_to(http::Router& router) {
    const auto bind = [this](auto member) {
        return [this, member](http::Request& request) { return (this->*member)(request); };
    };
    using http::Access;
    const auto add = [&](Access access, const char* method, const char* pattern, auto member) {
        http::Route route(access, method, pattern, bind(member));
        if (route.method != "POST" && route.method != "PATCH") {
            route.body_bytes_max = limits::kHttpIgnoredBodyBytesMax;
        }
        router.add(std::move(route));
    };
    add_docs(router);
    add(Access::kOpen, "GET", "/healthz", &Routes::health);
    add(Access::kRead, "GET", "/", &Routes::index);
    add(Access::kRead, "GET", "/openapi.json", &Routes::openapi);
    add(Access::kRead, "GET", "/v1/sessions", &Routes::list_sessions);
    add(Access::kChange, "POST", "/v1/sessions", &Routes::create_session);
    add(Access::kRead, "GET", "/v1/sessions/{id}", &Routes::get_session);
    add(Access::kChange, "PATCH", "/v1/sessions/{id}", &Routes::update_session);
    add(Access::kChange, "DELETE", "/v1/sessions/{id}", &Routes::remove_session);
    add(Access::kChange, "POST", "/v1/sessions/{id}/interrupt", &Routes::interrupt);
    add(Access::kChange, "POST", "/v1/sessions/{id}/restart", &Routes::restart);
    executions_.add_to(router);
    add(Access::kRead, "GET", "/v1/sessions/{id}/files", &Routes::list_files);
    add(Access::kRead, "GET", "/v1/sessions/{id}/files.tar.zst", &Routes::get_archive);
    add(Access::kRead, "GET", "/v1/sessions/{id}/files/{path...}", &Routes::get_file);
    add(Access::kChange, "DELETE", "/v1/sessions/{id}/files/{path...}", &Routes::remove_file);

    http::Route upload(
        Access::kChange, "PUT", "/v1/sessions/{id}/files/{path...}", bind(&Routes::put_file));
    upload.body_mode = http::BodyMode::kStreamed;
    upload.body_bytes_max = limits::kUploadBytesMax;
    router.add(std::move(upload));
}

Routes::Answer Routes::health(http::Request& /*request*/) {
    const char* const state = backend_.ready() ? "ready" : "warming";
    if (const std::string trouble = history_.trouble(); !trouble.empty()) {
        co_return http::make_json(
            200, {{"status", "degraded"}, {"state", state}, {"store", trouble}});
    }
    co_return http::make_json(200, {{"status", "ok"}, {"state", state}});
}

Routes::Answer Routes::index(http::Request& /*request*/) {
    nlohmann::json absent = nlohmann::json::array();
    for (const session::NotOffered& one : backend_.not_offered()) {
        absent.push_back({{"language", one.language}, {"reason", one.reason}, {"hint", one.hint}});
    }
    co_return http::make_json(
        200,
        {{"name", "cellkeep"},
         {"version", version_},
         {"languages", backend_.languages()},
         {"not_offered", std::move(absent)},
         {"links",
          {{"sessions", "/v1/sessions"},
           {"executions", "/v1/executions"},
           {"openapi", "/openapi.json"},
           {"docs", "/docs"},
           {"health", "/healthz"}}}});
}

Routes::Answer Routes::openapi(http::Request& /*request*/) {
    http::Response response;
    response.headers.add("Content-Type", "application/json");
    response.body = std::string(openapi_document());
    co_return response;
}

std::shared_ptr<session::Session> find_session(
    session::SessionService& backend, const http::Request& request) {
    auto session = backend.find(request.capture("id"));
    if (session != nullptr && !http::may_see(request.principal, session->info().owner)) {
        return nullptr;
    }
    return session;
}

void count_as_use(const http::Request& request, session::Session& session) {
    if (http::may_change(request.principal)) {
        session.touch();
    }
}

Offer Routes::offer() const {
    return {backend_.languages(), backend_.ceilings(), backend_.not_offered()};
}

http::Response unknown_session(const http::Request& request) {
    return http::to_response(http::make_problem(
        404,
        "unknown-session",
        "No such session",
        "There is no session " + request.capture("id") + "; it may have ended."));
}

}  // namespace cellkeep::agent
