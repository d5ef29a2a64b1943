// SPDX-License-Identifier: Apache-2.0
//
// E2B's process.Process over the commands of a session: started, followed, written to, signalled.
#pragma once

#include "kernel-manager/e2b/envd/command_deadlines.hpp"
#include "kernel-manager/e2b/envd/open_streams.hpp"
#include "kernel-manager/e2b/wire/sandbox_door.hpp"
#include "kernel-manager/http/router.hpp"

namespace cellkeep::e2b {

/// What streams and deadlines of commands are counted in.
struct CommandBooks {
    OpenStreams& streams;
    CommandDeadlines& deadlines;
};

/// All must outlive the router.
void add_process_rpcs(http::Router& router, const SandboxDoor& door, CommandBooks books);

}  // namespace cellkeep::e2b
