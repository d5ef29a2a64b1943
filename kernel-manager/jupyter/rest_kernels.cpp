// SPDX-License-Identifier: Apache-2.0
//
// /api/kernels.
#include "kernel-manager/http/problem.hpp"
#include "kernel-manager/jupyter/rest_api.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_options.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {

namespace {

http::Response no_such_kernel(const std::string& id) {
    return http::to_response(http::make_problem(404, "Kernel does not exist: " + id));
}

}  // namespace

std::shared_ptr<session::Session> RestApi::find_kernel(
    const std::string& id, const http::Principal& principal) const {
    if (!is_uuid(id)) {
        return nullptr;  // the backend knows sessions by their other ids too
    }
    auto found = backend_.find(id);
    if (found != nullptr && !http::may_see(principal, found->info().owner)) {
        return nullptr;
    }
    return found;
}

std::vector<session::SessionInfo> RestApi::visible_kernels(const http::Principal& principal) const {
    std::vector<session::SessionInfo> visible;
    for (const auto& each : backend_.list()) {
        if (session::SessionInfo info = each->info(); http::may_see(principal, info.owner)) {
            visible.push_back(std::move(info));
        }
    }
    return visible;
}

std::string RestApi::why_not(const std::string& kernel_name) const {
    const auto absent = backend_.not_offered();
    std::vector<std::string> names;
    for (const session::NotOffered& one : absent) {
        names.push_back(one.language);
    }
    const auto language = language_of(kernel_name, names);
    const auto found = std::find_if(
        absent.begin(), absent.end(), [&](const auto& one) { return one.language == language; });
    return found == absent.end() ? std::string() : describe(*found);
}

boost::asio::awaitable<RestApi::Started> RestApi::start_kernel(
    KernelOrder order, std::string owner) {
    const std::string& name = order.name.empty() ? config_.default_kernel_name : order.name;
    const auto language = language_of(name, backend_.languages());
    if (!language) {
        co_return Error(ErrorCode::kNotFound, name, why_not(name));
    }
    BOOST_OUTCOME_CO_TRY(
        ChosenEnvironment environment, choose_environment(order.env, config_.allowed_envs));
    if (environment.dropped_count > 0) {
        std::string line = "variables of the client not passed to its kernel:";
        for (const std::string& each : environment.dropped) {
            line += " " + each;
        }
        if (environment.dropped_count > environment.dropped.size()) {
            line += " and others";
        }
        log(line);
    }
    session::SessionOptions options;
    BOOST_OUTCOME_CO_TRY(options.working_directory, directory_in_workspace(order.path));
    if (const auto wish = environment.passed.find("KERNEL_WORKING_DIR");
        options.working_directory.empty() && wish != environment.passed.end()) {
        // A gateway client sets it to a directory of its own host: only a usable one counts.
        if (auto directory = directory_in_workspace(wish->second)) {
            options.working_directory = std::move(directory).value();
        }
    }
    options.kernel_id = std::move(order.kernel_id);
    options.language = *language;
    options.limits = config_.limits;
    options.cull = config_.cull;
    options.env = std::move(environment.passed);
    options.owner = std::move(owner);
    co_return co_await backend_.create(std::move(options));
}

RestApi::Answer RestApi::list_kernels(http::Request& request) {
    nlohmann::json kernels = nlohmann::json::array();
    for (const session::SessionInfo& info : visible_kernels(request.principal)) {
        kernels.push_back(kernel_model(info));
    }
    co_return http::make_json(200, kernels);
}

RestApi::Answer RestApi::create_kernel(http::Request& request) {
    const auto body = parse_body(request.body);
    if (body.has_error()) {
        co_return failure_response(body.error());
    }
    auto order = read_kernel_order(body.value().value_or(nlohmann::json::object()));
    if (order.has_error()) {
        co_return failure_response(order.error());
    }
    const auto started = co_await start_kernel(std::move(order).value(), request.principal.name);
    if (started.has_error() && started.error().code() == ErrorCode::kNotFound) {
        co_return unknown_kernel_name(started.error());
    }
    if (started.has_error()) {
        co_return failure_response(started.error());
    }
    const session::SessionInfo info = started.value()->info();
    http::Response response = http::make_json(201, kernel_model(info));
    response.headers.add("Location", "/api/kernels/" + info.kernel_id);
    co_return response;
}

RestApi::Answer RestApi::get_kernel(http::Request& request) {
    const auto kernel = find_kernel(request.capture("id"), request.principal);
    if (kernel == nullptr) {
        co_return no_such_kernel(request.capture("id"));
    }
    co_return http::make_json(200, kernel_model(kernel->info()));
}

RestApi::Answer RestApi::remove_kernel(http::Request& request) {
    const auto kernel = find_kernel(request.capture("id"), request.principal);
    if (kernel == nullptr) {
        co_return no_such_kernel(request.capture("id"));
    }
    const Status removed = backend_.remove(kernel->id());
    if (removed.has_error() && removed.error().code() == ErrorCode::kNotFound) {
        co_return no_such_kernel(request.capture("id"));
    }
    if (removed.has_error()) {
        co_return failure_response(removed.error());
    }
    co_await backend_.wait_until_gone(kernel->id());
    co_return http::make_empty(204);
}

RestApi::Answer RestApi::interrupt_kernel(http::Request& request) {
    const auto kernel = find_kernel(request.capture("id"), request.principal);
    if (kernel == nullptr) {
        co_return no_such_kernel(request.capture("id"));
    }
    kernel->touch();
    // The kernel of these interfaces is the main one; an agent's run of another language goes on.
    const Status interrupted = kernel->interrupt_language(kernel->info().language);
    if (interrupted.has_error()) {
        co_return failure_response(interrupted.error());
    }
    co_return http::make_empty(204);
}

RestApi::Answer RestApi::restart_kernel(http::Request& request) {
    const auto kernel = find_kernel(request.capture("id"), request.principal);
    if (kernel == nullptr) {
        co_return no_such_kernel(request.capture("id"));
    }
    kernel->touch();
    const Status restarted = co_await kernel->restart();
    if (restarted.has_error()) {
        http::Problem problem = http::problem_from(restarted.error());
        problem.status = 500;  // as in Jupyter Server
        problem.title = "Exception restarting kernel";
        co_return http::to_response(problem);
    }
    co_return http::make_json(200, kernel_model(kernel->info()));
}

}  // namespace cellkeep::jupyter
