// SPDX-License-Identifier: Apache-2.0
//
// Batches in the session API: many candidates tried from one state. A principal that is not an
// administrator sees its own only.
#pragma once

#include "kernel-manager/api/batches.hpp"
#include "kernel-manager/api/history.hpp"
#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::api {

/// The session service, history and lookup must outlive it, and it the listener.
class BatchRoutes {
 public:
    BatchRoutes(session::SessionService& backend, History& history, const SessionLookup& lookup)
        : backend_(backend), lookup_(lookup), batches_({backend, history}) {}
    void add_to(http::Router& router);
    /// As Batches::running().
    std::vector<std::string> running() const { return batches_.running(); }

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    Answer run(http::Request& request);
    Answer get(http::Request& request);
    Answer follow(http::Request& request);
    Answer remove(http::Request& request);
    /// Returns null if there is no such batch, or none that the principal may see.
    std::shared_ptr<BatchRun> find(const http::Request& request);

    session::SessionService& backend_;
    const SessionLookup& lookup_;
    Batches batches_;
};

}  // namespace cellkeep::api
