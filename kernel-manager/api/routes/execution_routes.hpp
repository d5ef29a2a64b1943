// SPDX-License-Identifier: Apache-2.0
//
// Executions of a session in the session API. A principal that is not an administrator sees its own
// only.
#pragma once

#include "kernel-manager/api/history.hpp"
#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <string>

namespace cellkeep::api {

/// Executions in one page of a listing.
inline constexpr std::size_t kPageExecutionsMax = 1000;
inline constexpr std::size_t kPageExecutionsDefault = 100;

/// The id of the execution in what an answer of these routes waits for (http::Request::awaited).
std::string execution_of(const std::string& awaited);

/// History and lookup must outlive it, and it the listener.
class ExecutionRoutes {
 public:
    ExecutionRoutes(History& history, const SessionLookup& lookup)
        : history_(history), lookup_(lookup) {}
    void add_to(http::Router& router);

 private:
    using Answer = boost::asio::awaitable<http::Response>;
    using Session = SessionLookup::Session;

    Answer execute(http::Request& request, Session session);
    /// Of a request that another program in this process has begun.
    Answer go_on(http::Request& request, Session session);
    Answer list(http::Request& request);
    Answer get(http::Request& request);
    Answer events(http::Request& request, Session session);
    Answer interrupt(http::Request& request, Session session);

    History& history_;
    const SessionLookup& lookup_;
};

}  // namespace cellkeep::api
