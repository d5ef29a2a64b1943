// SPDX-License-Identifier: Apache-2.0
//
// Branches of a session: sessions of their own that go on from a checkpoint of it, or from now.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

namespace cellkeep::api {

/// Both must outlive the router.
void add_branch_routes(
    http::Router& router, const SessionLookup& lookup, session::SessionService& backend);

}  // namespace cellkeep::api
