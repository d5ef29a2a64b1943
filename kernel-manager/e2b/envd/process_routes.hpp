// SPDX-License-Identifier: Apache-2.0
//
// E2B's process.Process over the commands of a session: started, followed, written to, signalled.
#pragma once

#include "kernel-manager/e2b/wire/sandbox_door.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::e2b {

/// door must outlive the router.
void add_process_rpcs(http::Router& router, const SandboxDoor& door);

}  // namespace cellkeep::e2b
