// SPDX-License-Identifier: Apache-2.0
//
// What this process may do to its host: as root with the needed capabilities, or as anyone else.
#pragma once

namespace cellkeep::sandbox {

enum class RunMode { kRoot, kRootless };

/// kRoot if the effective capabilities let the server give a session a user id of its own and clone
/// mounts (CAP_SETUID, CAP_SETGID, CAP_SYS_ADMIN) and the effective uid is 0.
RunMode run_mode();

}  // namespace cellkeep::sandbox
