// SPDX-License-Identifier: Apache-2.0
//
// E2B's GET and POST /files over the workspace of a session, /health and /metrics.
#pragma once

#include "kernel-manager/e2b/wire/sandbox_door.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::e2b {

/// door must outlive the router.
void add_envd_files(http::Router& router, const SandboxDoor& door);

}  // namespace cellkeep::e2b
