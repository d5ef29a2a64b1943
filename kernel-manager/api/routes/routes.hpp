// SPDX-License-Identifier: Apache-2.0
//
// The session API, /v1: sessions, executions and files as HTTP routes over a SessionService.
// Translates and checks; every decision about a session is the session service's. What a principal
// may not see (http/access/principal.hpp) does not exist for it (404); what a role may not do at
// all, its route says.
#pragma once

#include "kernel-manager/api/routes/batch_routes.hpp"
#include "kernel-manager/api/routes/execution_routes.hpp"
#include "kernel-manager/api/routes/one_shot_routes.hpp"
#include "kernel-manager/api/routes/service_routes.hpp"
#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/api/routes/session_routes.hpp"
#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/preview/previews.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "kernel-manager/session/packages/package_installer.hpp"

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::api {

/// Owns what the routes of the session API share. The session service, history and previews must
/// outlive it, and it the listener.
class Routes {
 public:
    /// approvals may be null: nothing ever waits for one. packages too: no session installs any.
    Routes(
        session::SessionService& backend,
        History& history,
        preview::Previews& previews,
        std::string version,
        std::shared_ptr<governance::Approvals> approvals = nullptr,
        std::shared_ptr<session::PackageInstaller> packages = nullptr);
    Routes(const Routes&) = delete;
    Routes& operator=(const Routes&) = delete;
    ~Routes() = default;
    void add_to(http::Router& router);
    /// Batches that have not finished, by their ids.
    std::vector<std::string> running_batches() const { return batches_.running(); }

 private:
    session::SessionService& backend_;
    preview::Previews& previews_;
    SessionLookup lookup_;
    ServiceRoutes service_;
    SessionRoutes sessions_;
    ExecutionRoutes executions_;
    OneShotRoutes one_shots_;
    BatchRoutes batches_;
    std::shared_ptr<governance::Approvals> approvals_;
    std::shared_ptr<session::PackageInstaller> packages_;  // never null
};

}  // namespace cellkeep::api
