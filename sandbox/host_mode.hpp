// SPDX-License-Identifier: Apache-2.0
//
// What this process may do to its host: as root with the needed capabilities, or as anyone else.
#pragma once

namespace cellkeep::sandbox {

enum class RunMode { kRoot, kRootless };

/// kRoot if the effective uid is 0, the user namespace is the host's own, and the effective
/// capabilities let the server give a session a user id of its own and clone mounts (CAP_SETUID,
/// CAP_SETGID, CAP_SYS_ADMIN). The root of a rootless container is an ordinary user: it has no ids
/// to give away.
RunMode run_mode();

}  // namespace cellkeep::sandbox
