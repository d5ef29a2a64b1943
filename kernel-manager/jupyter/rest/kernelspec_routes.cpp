// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/kernelspec_routes.hpp"

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/jupyter/rest/logos.hpp"
#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace cellkeep::jupyter {

namespace {

/// A page shows the logos of all kernels each time that it opens. They change with an installation.
constexpr const char* kLogoCaching = "public, max-age=3600";

}  // namespace

void KernelspecRoutes::add_to(http::Router& router, ClientActivity& activity) {
    using http::Access;
    const auto make = [this](Access access, const char* pattern, auto member) {
        return http::Route(access, "GET", pattern, [this, member](http::Request& request) {
            return (this->*member)(request);
        });
    };
    router.add(activity.counted(make(Access::kRead, "/api/kernelspecs", &KernelspecRoutes::list)));
    router.add(
        activity.counted(make(Access::kRead, "/api/kernelspecs/{name}", &KernelspecRoutes::get)));
    // A page shows a logo with <img>, which cannot send a token; the pictures are no secret.
    router.add(make(Access::kOpen, "/kernelspecs/{name}/{file}", &KernelspecRoutes::get_logo)
                   .without_body());
}

KernelspecRoutes::Answer KernelspecRoutes::list(http::Request& request) {
    // With KERNEL_USERNAME set, Jupyter Server's gateway client asks for one kernelspec with
    // "/api/kernelspecs?user=NAME/python3".
    const std::string user = request.target.find_query("user").value_or("");
    if (const std::size_t slash = user.rfind('/'); slash != std::string::npos) {
        request.captures.insert_or_assign("name", user.substr(slash + 1));
        co_return co_await get(request);
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

KernelspecRoutes::Answer KernelspecRoutes::get(http::Request& request) {
    const std::string name = request.capture("name");
    const auto language = language_of(name, backend_.languages());
    const session::KernelSpec* spec = language ? backend_.find_spec(*language) : nullptr;
    if (spec == nullptr) {
        const std::string why = kernels_.why_not(name);
        co_return http::to_response(http::make_problem(
            404, "Kernel spec " + name + " not found." + (why.empty() ? "" : " Why: " + why)));
    }
    co_return http::make_json(200, kernelspec_model(*spec, config_.base_url));
}

KernelspecRoutes::Answer KernelspecRoutes::get_logo(http::Request& request) {
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

}  // namespace cellkeep::jupyter
