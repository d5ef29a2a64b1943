// SPDX-License-Identifier: Apache-2.0
//
// GET and DELETE of files in a workspace, and the listing of a directory.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::api {

/// lookup must outlive the router.
void add_file_routes(http::Router& router, const SessionLookup& lookup);

}  // namespace cellkeep::api
