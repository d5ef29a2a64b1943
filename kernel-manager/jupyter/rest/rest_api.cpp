// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_api.hpp"

#include <utility>

namespace cellkeep::jupyter {

RestApi::RestApi(boost::asio::io_context& io, session::SessionService& backend, RestConfig config)
    : config_(std::move(config)),
      kernels_(backend, config_),
      server_(config_, kernels_, activity_),
      kernelspec_routes_(backend, config_, kernels_),
      kernel_routes_(backend, kernels_),
      places_(backend),
      contents_(places_, kernels_),
      documents_(io, backend, config_, kernels_, places_),
      terminals_(backend, kernels_, places_) {}

void RestApi::add_to(http::Application& application) {
    http::Router& router = application.router();
    server_.add_to(router);
    kernelspec_routes_.add_to(router, activity_);
    kernel_routes_.add_to(router, activity_);
    contents_.add_to(router, activity_);
    documents_.add_to(router, activity_);
    terminals_.add_to(router, activity_);
    application.add_jupyter_prefix("api");
    application.add_jupyter_prefix("kernelspecs");
    application.add_jupyter_prefix("terminals");
}

}  // namespace cellkeep::jupyter
