// SPDX-License-Identifier: Apache-2.0
//
// The session API, /v1: sessions, executions and files as HTTP routes over a SessionService.
// Translates and checks; every decision about a session is the session service's. What a principal
// may not see (http/principal.hpp) does not exist for it (404); what a role may not do at all, its
// route says.
#pragma once

#include "kernel-manager/api/execution_routes.hpp"
#include "kernel-manager/api/request_body.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <memory>
#include <string>

namespace cellkeep::agent {

/// All of them must outlive the listener.
class Routes {
 public:
    Routes(session::SessionService& backend, History& history, std::string version);
    void add_to(http::Router& router);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    // routes.cpp
    Answer index(http::Request& request);
    Answer health(http::Request& request);
    Answer openapi(http::Request& request);

    // session_routes.cpp
    Answer create_session(http::Request& request);
    Answer list_sessions(http::Request& request);
    Answer get_session(http::Request& request);
    Answer update_session(http::Request& request);
    Answer remove_session(http::Request& request);
    Answer interrupt(http::Request& request);
    Answer restart(http::Request& request);

    // file_routes.cpp
    Answer list_files(http::Request& request);
    Answer get_file(http::Request& request);
    Answer remove_file(http::Request& request);

    // upload_routes.cpp
    Answer put_file(http::Request& request);
    Answer put_directory(
        http::Request& request, session::Session& session, const std::string& named);

    // archive_routes.cpp
    Answer get_archive(http::Request& request);

    Offer offer() const;

    session::SessionService& backend_;
    History& history_;
    std::string version_;
    ExecutionRoutes executions_;
};

/// 404 for a session that does not exist, or not for this principal.
http::Response unknown_session(const http::Request& request);
/// The session that the path names, if the principal may see it; else null.
std::shared_ptr<session::Session> find_session(
    session::SessionService& backend, const http::Request& request);
/// The session has been used, unless an observer only looked: a look keeps nothing alive.
void count_as_use(const http::Request& request, session::Session& session);

}  // namespace cellkeep::agent
