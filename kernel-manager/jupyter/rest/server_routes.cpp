// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/server_routes.hpp"

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "protocol/message.hpp"
#include "protocol/support/time.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::jupyter {

namespace {

/// The version of Jupyter Server whose interface this is: clients that look take it for that.
constexpr const char* kApiVersion = "2.20.0";
constexpr std::size_t kPermissionsBytesMax = 16ULL << 10U;

/// The part of what is asked that the role may do; nothing if the question is not understood.
std::optional<nlohmann::json> granted(const std::string& question, http::Role role) {
    if (question.size() > kPermissionsBytesMax) {
        return std::nullopt;
    }
    const auto asked = protocol::parse_json(question, "permissions");
    if (asked.has_error() || !asked.value().is_object()) {
        return std::nullopt;
    }
    nlohmann::json answer = nlohmann::json::object();
    for (const auto& [resource, actions] : asked.value().items()) {
        if (!actions.is_array()) {
            return std::nullopt;
        }
        nlohmann::json allowed = nlohmann::json::array();
        for (const nlohmann::json& action : actions) {
            if (!action.is_string()) {
                return std::nullopt;
            }
            if (role != http::Role::kObserver || action == "read") {
                allowed.push_back(action);
            }
        }
        answer[resource] = std::move(allowed);
    }
    return answer;
}

}  // namespace

ServerRoutes::ServerRoutes(
    const RestConfig& config, const RestKernels& kernels, ClientActivity& activity)
    : config_(config),
      kernels_(kernels),
      activity_(activity),
      started_(std::chrono::system_clock::now()) {}

void ServerRoutes::add_to(http::Router& router) {
    using http::Access;
    const auto make = [this](Access access, const char* method, const char* pattern, auto member) {
        return http::Route(access, method, pattern, [this, member](http::Request& request) {
            return (this->*member)(request);
        });
    };
    const auto add_get = [&](Access access, const char* pattern, auto member) {
        router.add(make(access, "GET", pattern, member).without_body());
    };
    // As in Jupyter Server: the version needs no token, and looking at the status is no activity.
    add_get(Access::kOpen, "/api", &ServerRoutes::version);
    add_get(Access::kOpen, "/api/", &ServerRoutes::version);
    add_get(Access::kRead, "/api/status", &ServerRoutes::status);
    // Where a person or a client ends up that takes this for a Jupyter Server with a log-in.
    add_get(Access::kOpen, "/login", &ServerRoutes::explain_login);
    add_get(Access::kOpen, "/logout", &ServerRoutes::explain_login);
    const auto add_counted = [&](Access access, const char* method, const char* path, auto member) {
        router.add(activity_.counted(make(access, method, path, member)));
    };
    add_counted(Access::kRead, "GET", "/api/me", &ServerRoutes::me);
}

ServerRoutes::Answer ServerRoutes::version(http::Request& /*request*/) {
    co_return http::make_json(200, {{"version", kApiVersion}});
}

// NOLINTNEXTLINE(readability-make-member-function-const): all answers have one type.
ServerRoutes::Answer ServerRoutes::explain_login(http::Request& /*request*/) {
    http::Response response;
    response.headers.add("Content-Type", "text/plain; charset=utf-8");
    response.body = std::string(
        "There is no log-in and no log-out here: this server sets no cookie and keeps no state of "
        "a "
        "browser.\nEach request carries the server's token, as \"Authorization: Bearer TOKEN\" or "
        "?token=TOKEN.\nA page to read and try the API is at " +
        config_.base_url + "docs.\n");
    co_return response;
}

ServerRoutes::Answer ServerRoutes::status(http::Request& request) {
    std::size_t connections = 0;
    auto last_activity = activity_.last_seen_by(request.principal, started_);
    const auto kernels = kernels_.visible(request.principal);
    for (const session::SessionInfo& info : kernels) {
        connections += info.connections;
        last_activity = std::max(last_activity, info.last_activity);
    }
    co_return http::make_json(
        200,
        {{"started", to_iso8601(started_)},
         {"last_activity", to_iso8601(last_activity)},
         {"connections", connections},
         {"kernels", kernels.size()}});
}

ServerRoutes::Answer ServerRoutes::me(http::Request& request) {
    const std::string question = request.target.find_query("permissions").value_or("{}");
    auto permissions = granted(question, request.principal.role);
    if (!permissions) {
        co_return http::to_response(http::make_problem(
            400, R"(permissions must be a JSON object {"resource": ["action", …]}.)"));
    }
    const std::string& name = request.principal.name;
    co_return http::make_json(
        200,
        {{"identity",
          {{"username", name},
           {"name", name},
           {"display_name", name},
           {"initials", name.substr(0, 1)},
           {"avatar_url", nullptr},
           {"color", nullptr}}},
         {"permissions", std::move(*permissions)},
         {"updatable_fields", nlohmann::json::array()}});
}

}  // namespace cellkeep::jupyter
