// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/kernel_routes.hpp"

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/jupyter/rest/rest_body.hpp"
#include "kernel-manager/jupyter/rest/rest_failures.hpp"
#include "kernel-manager/jupyter/rest/rest_model.hpp"
#include "kernel-manager/session/session_info.hpp"

#include <string>
#include <utility>

namespace cellkeep::jupyter {

namespace {

http::Response no_such_kernel(const std::string& id) {
    return http::to_response(http::make_problem(404, "Kernel does not exist: " + id));
}

}  // namespace

void KernelRoutes::add_to(http::Router& router, ClientActivity& activity) {
    using http::Access;
    const auto all = [this](auto member) {
        return [this, member](http::Request& request) { return (this->*member)(request); };
    };
    const auto one = [this](auto member) {
        return [this, member](http::Request& request) { return with_kernel(request, member); };
    };
    const auto add = [&](Access access, const char* method, const char* pattern, auto handler) {
        router.add(activity.counted(http::Route(access, method, pattern, std::move(handler))));
    };
    add(Access::kRead, "GET", "/api/kernels", all(&KernelRoutes::list));
    add(Access::kChange, "POST", "/api/kernels", all(&KernelRoutes::create));
    add(Access::kRead, "GET", "/api/kernels/{id}", one(&KernelRoutes::get));
    add(Access::kChange, "DELETE", "/api/kernels/{id}", one(&KernelRoutes::remove));
    add(Access::kChange, "POST", "/api/kernels/{id}/interrupt", one(&KernelRoutes::interrupt));
    add(Access::kChange, "POST", "/api/kernels/{id}/restart", one(&KernelRoutes::restart));
}

KernelRoutes::Answer KernelRoutes::with_kernel(
    http::Request& request, Answer (KernelRoutes::*member)(http::Request&, Kernel)) {
    Kernel kernel = kernels_.find(request.capture("id"), request.principal);
    if (kernel == nullptr) {
        co_return no_such_kernel(request.capture("id"));
    }
    http::Response answer = co_await (this->*member)(request, std::move(kernel));
    co_return answer;
}

KernelRoutes::Answer KernelRoutes::list(http::Request& request) {
    nlohmann::json kernels = nlohmann::json::array();
    for (const session::SessionInfo& info : kernels_.visible(request.principal)) {
        kernels.push_back(kernel_model(info));
    }
    co_return http::make_json(200, kernels);
}

KernelRoutes::Answer KernelRoutes::create(http::Request& request) {
    const auto body = co_await read_object(request);
    if (body.has_error()) {
        co_return failure_response(body.error());
    }
    auto order = read_kernel_order(body.value().value_or(nlohmann::json::object()));
    if (order.has_error()) {
        co_return failure_response(order.error());
    }
    const auto started = co_await kernels_.start(std::move(order).value(), request.principal.name);
    if (started.has_error()) {
        co_return start_failure_response(started.error());
    }
    const session::SessionInfo info = started.value()->info();
    http::Response response = http::make_json(201, kernel_model(info));
    response.headers.add("Location", "/api/kernels/" + info.kernel_id);
    co_return response;
}

KernelRoutes::Answer KernelRoutes::get(http::Request& /*request*/, Kernel kernel) {
    co_return http::make_json(200, kernel_model(kernel->info()));
}

KernelRoutes::Answer KernelRoutes::remove(http::Request& request, Kernel kernel) {
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

KernelRoutes::Answer KernelRoutes::interrupt(http::Request& /*request*/, Kernel kernel) {
    kernel->touch();
    // The kernel of these interfaces is the main one; an agent's run of another language goes on.
    const Status interrupted = kernel->interrupt_language(kernel->info().language);
    if (interrupted.has_error()) {
        co_return failure_response(interrupted.error());
    }
    co_return http::make_empty(204);
}

KernelRoutes::Answer KernelRoutes::restart(http::Request& /*request*/, Kernel kernel) {
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
