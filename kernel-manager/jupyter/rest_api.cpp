// SPDX-License-Identifier: Apache-2.0
//
// The routes, and those of them that no kernel is needed for.
#include "kernel-manager/jupyter/rest_api.hpp"

#include "kernel-manager/http/problem.hpp"
#include "kernel-manager/jupyter/logos.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "protocol/message.hpp"
#include "protocol/support/time.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::jupyter {

namespace {

/// The version of Jupyter Server whose interface this is: clients that look take it for that.
constexpr const char* kApiVersion = "2.20.0";
/// A page shows the logos of all kernels each time that it opens. They change with an installation.
constexpr const char* kLogoCaching = "public, max-age=3600";
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

RestApi::RestApi(boost::asio::io_context& io, session::SessionService& backend, RestConfig config)
    : io_(io),
      backend_(backend),
      config_(std::move(config)),
      pending_(std::make_shared<PendingDocuments>()),
      started_(std::chrono::system_clock::now()) {}

void RestApi::add_to(http::Application& application) {
    http::Router& router = application.router();
    using http::Access;
    const auto add = [&](Access access, const char* method, const char* pattern, auto member) {
        http::Route route(access, method, pattern, [this, member](http::Request& request) {
            touch_activity(request);
            return (this->*member)(request);
        });
        if (route.method == "GET" || route.method == "DELETE") {
            route.body_bytes_max = limits::kHttpIgnoredBodyBytesMax;
        }
        router.add(std::move(route));
    };
    add(Access::kRead, "GET", "/api/me", &RestApi::me);
    add(Access::kRead, "GET", "/api/kernelspecs", &RestApi::list_kernelspecs);
    add(Access::kRead, "GET", "/api/kernelspecs/{name}", &RestApi::get_kernelspec);
    add(Access::kRead, "GET", "/api/kernels", &RestApi::list_kernels);
    add(Access::kChange, "POST", "/api/kernels", &RestApi::create_kernel);
    add(Access::kRead, "GET", "/api/kernels/{id}", &RestApi::get_kernel);
    add(Access::kChange, "DELETE", "/api/kernels/{id}", &RestApi::remove_kernel);
    add(Access::kChange, "POST", "/api/kernels/{id}/interrupt", &RestApi::interrupt_kernel);
    add(Access::kChange, "POST", "/api/kernels/{id}/restart", &RestApi::restart_kernel);
    add(Access::kRead, "GET", "/api/sessions", &RestApi::list_sessions);
    add(Access::kChange, "POST", "/api/sessions", &RestApi::create_session);
    add(Access::kRead, "GET", "/api/sessions/{id}", &RestApi::get_session);
    add(Access::kChange, "PATCH", "/api/sessions/{id}", &RestApi::patch_session);
    add(Access::kChange, "DELETE", "/api/sessions/{id}", &RestApi::remove_session);
    add(Access::kRead, "GET", "/api/terminals", &RestApi::list_terminals);
    add(Access::kChange, "POST", "/api/terminals", &RestApi::create_terminal);
    add_open_routes(router);
    application.add_jupyter_prefix("api");
    application.add_jupyter_prefix("kernelspecs");
}

void RestApi::add_open_routes(http::Router& router) {
    const auto add = [&](http::Access access, const char* pattern, auto member) {
        http::Route route(access, "GET", pattern, [this, member](http::Request& request) {
            return (this->*member)(request);
        });
        route.body_bytes_max = limits::kHttpIgnoredBodyBytesMax;
        router.add(std::move(route));
    };
    // As in Jupyter Server: the version needs no token, and looking at the status is no activity.
    add(http::Access::kOpen, "/api", &RestApi::version);
    add(http::Access::kOpen, "/api/", &RestApi::version);
    // Where a person or a client ends up that takes this for a Jupyter Server with a log-in.
    add(http::Access::kOpen, "/login", &RestApi::explain_login);
    add(http::Access::kOpen, "/logout", &RestApi::explain_login);
    add(http::Access::kRead, "/api/status", &RestApi::status);
    // A page shows a logo with <img>, which cannot send a token; the pictures are no secret.
    add(http::Access::kOpen, "/kernelspecs/{name}/{file}", &RestApi::get_logo);
}

void RestApi::touch_activity(const http::Request& request) {
    if (!request.target.find_query("no_track_activity") && http::may_change(request.principal)) {
        last_requests_.insert_or_assign(request.principal.name, std::chrono::system_clock::now());
    }
}

void RestApi::log(const std::string& line) const {
    if (config_.log) {
        config_.log(line);
    }
}

RestApi::Answer RestApi::version(http::Request& /*request*/) {
    co_return http::make_json(200, {{"version", kApiVersion}});
}

RestApi::Answer RestApi::explain_login(http::Request& /*request*/) {
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

RestApi::Answer RestApi::status(http::Request& request) {
    std::size_t connections = 0;
    auto last_activity = started_;
    for (const auto& [name, time] : last_requests_) {
        if (http::may_see(request.principal, name)) {
            last_activity = std::max(last_activity, time);
        }
    }
    const auto kernels = visible_kernels(request.principal);
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

RestApi::Answer RestApi::me(http::Request& request) {
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

RestApi::Answer RestApi::list_kernelspecs(http::Request& request) {
    // With KERNEL_USERNAME set, Jupyter Server's gateway client asks for one kernelspec with
    // "/api/kernelspecs?user=NAME/python3".
    const std::string user = request.target.find_query("user").value_or("");
    if (const std::size_t slash = user.rfind('/'); slash != std::string::npos) {
        request.captures.insert_or_assign("name", user.substr(slash + 1));
        co_return co_await get_kernelspec(request);
    }
    nlohmann::json specs = nlohmann::json::object();
    for (const std::string& language : backend_.languages()) {
        if (const session::KernelSpec* spec = backend_.find_spec(language)) {
            specs[kernel_name_of(language)] = kernelspec_model(*spec, config_.base_url);
        }
    }
    co_return http::make_json(
        200, {{"default", config_.default_kernel_name}, {"kernelspecs", std::move(specs)}});
}

RestApi::Answer RestApi::get_kernelspec(http::Request& request) {
    const std::string name = request.capture("name");
    const auto language = language_of(name, backend_.languages());
    const session::KernelSpec* spec = language ? backend_.find_spec(*language) : nullptr;
    if (spec == nullptr) {
        const std::string why = why_not(name);
        co_return http::to_response(http::make_problem(
            404, "Kernel spec " + name + " not found." + (why.empty() ? "" : " Why: " + why)));
    }
    co_return http::make_json(200, kernelspec_model(*spec, config_.base_url));
}

RestApi::Answer RestApi::get_logo(http::Request& request) {
    const auto language = language_of(request.capture("name"), backend_.languages());
    const session::KernelSpec* spec = language ? backend_.find_spec(*language) : nullptr;
    const Logo* logo = find_logo(request.capture("file"));
    auto bytes = spec != nullptr && logo != nullptr
                     ? load_logo(*spec, logo->file)
                     : Result<std::string>(Error(ErrorCode::kNotFound, "no such picture"));
    if (!bytes) {
        co_return http::to_response(
            http::make_problem(404, "There is no such kernelspec, or it has no such file."));
    }
    http::Response response;
    response.headers.add("Content-Type", std::string(logo->content_type));
    response.headers.add("Cache-Control", kLogoCaching);
    response.body = std::move(bytes.value());
    co_return response;
}

RestApi::Answer RestApi::list_terminals(http::Request& /*request*/) {
    co_return http::make_json(200, nlohmann::json::array());
}

RestApi::Answer RestApi::create_terminal(http::Request& /*request*/) {
    co_return http::to_response(http::make_problem(
        404,
        "terminals-not-offered",
        "Terminals are not offered",
        "This server has no terminals: everything runs in the sandbox of a kernel. \"!command\" "
        "in a cell runs a program there."));
}

http::Response failure_response(const Error& error) {
    http::Problem problem = http::problem_from(error);
    if (error.code() == ErrorCode::kInvalidArgument) {
        problem.status = 400;
    }
    if (error.code() == ErrorCode::kLimitExceeded) {
        problem.status = 403;
        problem.title = "Resource Limit";
    }
    return http::to_response(problem);
}

http::Response unknown_kernel_name(const Error& error) {
    const std::string& name = error.message();
    const std::string why = error.hint().empty() ? "" : " Why: " + error.hint();
    return http::make_json(
        501,
        {{"message",
          "The '" + name +
              "' kernel is not available. Please pick another suitable kernel instead." + why},
         {"short_message", name + " not found"},
         {"reason", "Kernel not available"}});
}

}  // namespace cellkeep::jupyter
