// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/service_routes.hpp"

#include "kernel-manager/api/openapi.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace cellkeep::api {

ServiceRoutes::ServiceRoutes(
    session::SessionService& backend, const History& history, std::string version)
    : backend_(backend), history_(history), version_(std::move(version)) {}

void ServiceRoutes::add_to(http::Router& router) {
    const auto add = [&](http::Access access, const char* pattern, auto member) {
        http::Route route(access, "GET", pattern, [this, member](http::Request& request) {
            return (this->*member)(request);
        });
        router.add(std::move(route).without_body());
    };
    add(http::Access::kOpen, "/healthz", &ServiceRoutes::health);
    add(http::Access::kRead, "/", &ServiceRoutes::index);
    add(http::Access::kRead, "/openapi.json", &ServiceRoutes::openapi);
}

ServiceRoutes::Answer ServiceRoutes::health(http::Request& /*request*/) {
    const char* const warm = backend_.ready() ? "ready" : "warming";
    const char* const state = backend_.preparing() ? "preparing" : warm;
    if (const std::string trouble = history_.trouble(); !trouble.empty()) {
        co_return http::make_json(
            200, {{"status", "degraded"}, {"state", state}, {"store", trouble}});
    }
    co_return http::make_json(200, {{"status", "ok"}, {"state", state}});
}

ServiceRoutes::Answer ServiceRoutes::index(http::Request& /*request*/) {
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

ServiceRoutes::Answer ServiceRoutes::openapi(http::Request& /*request*/) {
    http::Response response;
    response.headers.add("Content-Type", "application/json");
    response.body = std::string(openapi_document());
    co_return response;
}

}  // namespace cellkeep::api
