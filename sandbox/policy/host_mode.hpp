// SPDX-License-Identifier: Apache-2.0
//
// What this process may do to its host: as root with the needed capabilities, or as anyone else.
#pragma once

#include "protocol/support/result.hpp"

namespace cellkeep::sandbox {

enum class RunMode { kRoot, kRootless };

/// kRoot if the effective uid is 0, the user namespace is the host's own, and the effective
/// capabilities let the server give a session a user id of its own and clone mounts (CAP_SETUID,
/// CAP_SETGID, CAP_SYS_ADMIN). The root of a rootless container is an ordinary user: it has no ids
/// to give away.
RunMode run_mode();

/// kPermissionDenied for a root of the host (or one that cannot tell, without /proc) that lacks
/// those capabilities: as an ordinary user it would hand its own user id, the kernel's root, to its
/// guests.
Status check_identity();

}  // namespace cellkeep::sandbox
