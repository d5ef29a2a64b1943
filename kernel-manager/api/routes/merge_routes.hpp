// SPDX-License-Identifier: Apache-2.0
//
// The files of two states or of two sessions: compared, and a branch's taken into its parent.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::api {

/// lookup must outlive the router.
void add_merge_routes(http::Router& router, const SessionLookup& lookup);

}  // namespace cellkeep::api
