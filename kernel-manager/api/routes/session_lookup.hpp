// SPDX-License-Identifier: Apache-2.0
//
// From a request to the session that its path names. A session that the principal may not see
// (http/access/principal.hpp) does not exist for it. io_context thread only.
#pragma once

#include "kernel-manager/api/history.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>

namespace cellkeep::api {

class SessionLookup {
 public:
    using Session = std::shared_ptr<session::Session>;
    using SessionHandler =
        std::function<boost::asio::awaitable<http::Response>(http::Request&, Session)>;

    /// Both must outlive this.
    SessionLookup(session::SessionService& backend, const History& history)
        : backend_(backend), history_(history) {}

    /// Returns null if there is no such session, or none that the principal may see.
    Session find(const http::Request& request) const;
    /// The same of one that the request names elsewhere.
    Session find(const http::Principal& principal, const std::string& id) const;
    /// Calls `handler` with the session. Without one it answers 410 for a session that the history
    /// knows, 404 for every other. This must outlive the handler that is returned.
    http::Handler with_session(SessionHandler handler) const;

 private:
    boost::asio::awaitable<http::Response> serve(
        http::Request& request, const SessionHandler& handler) const;

    session::SessionService& backend_;
    const History& history_;
};

/// Counts the request as a use of the session. A look of an observer is none: it keeps nothing
/// alive.
void count_as_use(const http::Request& request, session::Session& session);

}  // namespace cellkeep::api
