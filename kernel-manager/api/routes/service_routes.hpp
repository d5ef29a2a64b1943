// SPDX-License-Identifier: Apache-2.0
//
// What the server says of itself: its health, the index of the API, the OpenAPI document.
#pragma once

#include "kernel-manager/api/history.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>

#include <string>

namespace cellkeep::api {

/// The session service and history must outlive it, and it the listener.
class ServiceRoutes {
 public:
    ServiceRoutes(session::SessionService& backend, const History& history, std::string version);
    void add_to(http::Router& router);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    Answer index(http::Request& request);
    Answer health(http::Request& request);
    Answer openapi(http::Request& request);

    session::SessionService& backend_;
    const History& history_;
    std::string version_;
};

}  // namespace cellkeep::api
