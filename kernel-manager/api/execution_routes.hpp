// SPDX-License-Identifier: Apache-2.0
//
// Executions in the session API: of a session, and those that have a sandbox of their own. A
// principal that is not an administrator sees its own only.
#pragma once

#include "kernel-manager/api/execution_answer.hpp"
#include "kernel-manager/api/history.hpp"
#include "kernel-manager/api/one_shots.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <memory>
#include <string>

namespace cellkeep::agent {

/// Executions in one page of a listing.
inline constexpr std::size_t kPageExecutionsMax = 1000;
inline constexpr std::size_t kPageExecutionsDefault = 100;

/// The service and the history must outlive it, and it the listener.
class ExecutionRoutes {
 public:
    ExecutionRoutes(session::SessionService& backend, History& history)
        : backend_(backend), history_(history), one_shots_(backend) {}
    void add_to(http::Router& router);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    Answer execute(http::Request& request);
    Answer list(http::Request& request);
    Answer get(http::Request& request);
    Answer events(http::Request& request);
    Answer interrupt(http::Request& request);

    // one_shot_routes.cpp
    Answer execute_once(http::Request& request);
    Answer get_once(http::Request& request);
    Answer once_events(http::Request& request);
    Answer interrupt_once(http::Request& request);
    std::shared_ptr<OneShot> find_once(const http::Request& request);

    session::SessionService& backend_;
    History& history_;
    OneShots one_shots_;
};

/// 400 for a listing that shall go on behind an execution that is not there.
http::Response unknown_cursor();
/// 404 for an execution that is not known, or not to this principal.
http::Response unknown_execution(const http::Request& request);
/// Why nothing runs. session: whose refusal it may be; null for none.
http::Response refuse_execution(const Error& error, const session::Session* session);
/// 204, or why not.
http::Response answer_interrupt(const http::Request& request, const Status& interrupted);

}  // namespace cellkeep::agent
