// SPDX-License-Identifier: Apache-2.0
//
// E2B's filesystem.Filesystem over the workspace of a session: what is there, directories, moves,
// removal. Long work is done in slices.
#pragma once

#include "kernel-manager/e2b/wire/sandbox_door.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::e2b {

/// door must outlive the router.
void add_filesystem_rpcs(http::Router& router, const SandboxDoor& door);

}  // namespace cellkeep::e2b
