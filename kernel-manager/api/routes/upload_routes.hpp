// SPDX-License-Identifier: Apache-2.0
//
// PUT of a file or a directory.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::api {

/// lookup must outlive the router.
void add_upload_routes(http::Router& router, const SessionLookup& lookup);

}  // namespace cellkeep::api
