// SPDX-License-Identifier: Apache-2.0
//
// The step itself: this process goes on as another program. Its number stays, and with it its
// parent, its place in a service manager and its cgroup.
#pragma once

#include "kernel-manager/cli/upgrade/command_line.hpp"
#include "kernel-manager/cli/upgrade/hand_over.hpp"
#include "protocol/support/result.hpp"

namespace cellkeep::cli {

/// Only the descriptors of the hand-over pass. Call it on the main thread, when no other is left.
/// Returns only if it failed: then everything is as it was.
Error replace_program(const CommandLine& line, const HandOver& hand_over);

}  // namespace cellkeep::cli
