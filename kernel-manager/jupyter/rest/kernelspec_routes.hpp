// SPDX-License-Identifier: Apache-2.0
//
// /api/kernelspecs, and the logos below /kernelspecs.
#pragma once

#include "kernel-manager/http/router.hpp"
#include "kernel-manager/jupyter/rest/client_activity.hpp"
#include "kernel-manager/jupyter/rest/rest_config.hpp"
#include "kernel-manager/jupyter/rest/rest_kernels.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>

namespace cellkeep::jupyter {

/// All of them must outlive it, and it the listener.
class KernelspecRoutes {
 public:
    KernelspecRoutes(
        session::SessionService& backend, const RestConfig& config, const RestKernels& kernels)
        : backend_(backend), config_(config), kernels_(kernels) {}
    void add_to(http::Router& router, ClientActivity& activity);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    Answer list(http::Request& request);
    Answer get(http::Request& request);
    Answer get_logo(http::Request& request);

    session::SessionService& backend_;
    const RestConfig& config_;
    const RestKernels& kernels_;
};

}  // namespace cellkeep::jupyter
