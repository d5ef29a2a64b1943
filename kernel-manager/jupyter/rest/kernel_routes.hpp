// SPDX-License-Identifier: Apache-2.0
//
// /api/kernels: kernels made, listed, shown, removed, interrupted, restarted.
#pragma once

#include "kernel-manager/http/router.hpp"
#include "kernel-manager/jupyter/rest/client_activity.hpp"
#include "kernel-manager/jupyter/rest/rest_kernels.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace cellkeep::jupyter {

/// All of them must outlive it, and it the listener.
class KernelRoutes {
 public:
    KernelRoutes(session::SessionService& backend, RestKernels& kernels)
        : backend_(backend), kernels_(kernels) {}
    void add_to(http::Router& router, ClientActivity& activity);

 private:
    using Answer = boost::asio::awaitable<http::Response>;
    using Kernel = std::shared_ptr<session::Session>;

    Answer list(http::Request& request);
    Answer create(http::Request& request);
    Answer get(http::Request& request, Kernel kernel);
    Answer remove(http::Request& request, Kernel kernel);
    Answer interrupt(http::Request& request, Kernel kernel);
    Answer restart(http::Request& request, Kernel kernel);
    /// 404 for a kernel that there is not, or not for this principal; else what the member answers.
    Answer with_kernel(
        http::Request& request, Answer (KernelRoutes::*member)(http::Request&, Kernel));

    session::SessionService& backend_;
    RestKernels& kernels_;
};

}  // namespace cellkeep::jupyter
