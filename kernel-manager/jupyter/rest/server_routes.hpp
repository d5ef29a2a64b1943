// SPDX-License-Identifier: Apache-2.0
//
// What the Jupyter Server REST API says of the server: its version, its status, the identity of the
// client, and log-in, which it has not.
#pragma once

#include "kernel-manager/http/router.hpp"
#include "kernel-manager/jupyter/rest/client_activity.hpp"
#include "kernel-manager/jupyter/rest/rest_config.hpp"
#include "kernel-manager/jupyter/rest/rest_kernels.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>

namespace cellkeep::jupyter {

/// All of them must outlive it, and it the listener.
class ServerRoutes {
 public:
    ServerRoutes(const RestConfig& config, const RestKernels& kernels, ClientActivity& activity);
    void add_to(http::Router& router);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    Answer version(http::Request& request);
    Answer explain_login(http::Request& request);
    Answer status(http::Request& request);
    Answer me(http::Request& request);

    const RestConfig& config_;
    const RestKernels& kernels_;
    ClientActivity& activity_;
    std::chrono::system_clock::time_point started_;
};

}  // namespace cellkeep::jupyter
