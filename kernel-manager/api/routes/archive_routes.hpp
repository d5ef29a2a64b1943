// SPDX-License-Identifier: Apache-2.0
//
// GET of a whole workspace, or of a directory in it, as one archive.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::api {

/// lookup must outlive the router.
void add_archive_routes(http::Router& router, const SessionLookup& lookup);

}  // namespace cellkeep::api
