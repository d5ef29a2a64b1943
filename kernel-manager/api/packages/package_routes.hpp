// SPDX-License-Identifier: Apache-2.0
//
// Packages of a session that lives, in the session API: installed on a client's word.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/session/packages/package_installer.hpp"

#include <memory>

namespace cellkeep::api {

/// lookup must outlive the router. installer is not null.
void add_package_routes(
    http::Router& router,
    const SessionLookup& lookup,
    std::shared_ptr<session::PackageInstaller> installer);

}  // namespace cellkeep::api
