// SPDX-License-Identifier: Apache-2.0
//
// Executions in the session API that have a sandbox of their own. A principal that is not an
// administrator sees its own only.
#pragma once

#include "kernel-manager/api/history.hpp"
#include "kernel-manager/api/one_shots.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace cellkeep::api {

/// The session service and history must outlive it, and it the listener.
class OneShotRoutes {
 public:
    OneShotRoutes(session::SessionService& backend, History& history)
        : backend_(backend), history_(history), one_shots_(backend) {}
    void add_to(http::Router& router);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    Answer execute(http::Request& request);
    Answer get(http::Request& request);
    Answer events(http::Request& request);
    Answer interrupt(http::Request& request);
    /// Returns null if there is no such execution, or none that the principal may see.
    std::shared_ptr<OneShot> find(const http::Request& request);

    session::SessionService& backend_;
    History& history_;
    OneShots one_shots_;
};

}  // namespace cellkeep::api
