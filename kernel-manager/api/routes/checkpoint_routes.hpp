// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of a session in the session API: made, listed, deleted, gone back to.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::api {

/// lookup must outlive the router.
void add_checkpoint_routes(http::Router& router, const SessionLookup& lookup);

}  // namespace cellkeep::api
