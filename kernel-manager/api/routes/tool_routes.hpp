// SPDX-License-Identifier: Apache-2.0
//
// Answers to the calls of tools that the caller of an execution lends to its code.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::api {

/// lookup must outlive the router.
void add_tool_routes(http::Router& router, const SessionLookup& lookup);

}  // namespace cellkeep::api
