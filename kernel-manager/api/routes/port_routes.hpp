// SPDX-License-Identifier: Apache-2.0
//
// Servers that code starts inside a session, at paths of this server, and the tokens of their own
// addresses. Pure, but for what it adds to the router.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/preview/previews.hpp"

namespace cellkeep::api {

/// Both must outlive the router.
void add_port_routes(
    http::Router& router, const SessionLookup& lookup, preview::Previews& previews);

}  // namespace cellkeep::api
