// SPDX-License-Identifier: Apache-2.0
//
// Sessions in the session API: made, listed, shown, changed, removed, interrupted, restarted.
#pragma once

#include "kernel-manager/api/bodies/request_body.hpp"
#include "kernel-manager/api/history.hpp"
#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace cellkeep::api {

/// All three must outlive it, and it the listener.
class SessionRoutes {
 public:
    SessionRoutes(
        session::SessionService& backend, const History& history, const SessionLookup& lookup)
        : backend_(backend), history_(history), lookup_(lookup) {}
    void add_to(http::Router& router);

 private:
    using Answer = boost::asio::awaitable<http::Response>;
    using Session = SessionLookup::Session;

    Answer create(http::Request& request);
    Answer go_on(http::Request& request, SessionOrder order);
    Answer list(http::Request& request);
    Answer get(http::Request& request, Session session);
    Answer update(http::Request& request, Session session);
    Answer remove(http::Request& request, Session session);
    Answer interrupt(http::Request& request, Session session);
    Answer restart(http::Request& request, Session session);

    session::SessionService& backend_;
    const History& history_;
    const SessionLookup& lookup_;
};

}  // namespace cellkeep::api
