// SPDX-License-Identifier: Apache-2.0
//
// Processes of a session in the session API: started, listed, read, written to, signalled, killed.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::api {

/// lookup must outlive the router.
void add_process_routes(http::Router& router, const SessionLookup& lookup);

}  // namespace cellkeep::api
