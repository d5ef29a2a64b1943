// SPDX-License-Identifier: Apache-2.0
//
// What sessions see of the host's own files where there is no private image.
#pragma once

#include "sandbox/policy/policy.hpp"

#include <vector>

namespace cellkeep::session {

/// What every interpreter needs: programs and libraries, time zones, fonts and the certificates'
/// public halves. No /etc of the host, no /home, no /var, no /sys.
std::vector<sandbox::ReadOnlyPath> system_paths();

}  // namespace cellkeep::session
