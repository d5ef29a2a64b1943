// SPDX-License-Identifier: Apache-2.0
//
// The server's own requests on the control channel of the kernel link. No client can send them: of
// clients' control requests only debug_request reaches a kernel.
#pragma once

#include <string_view>

namespace cellkeep::protocol {

/// Gives a kernel that was started as a spare to a session: content {"env": {NAME: value},
/// "working_directory": absolute path or ""}, reply cellkeep_adopt_reply {"status": "ok"} or an
/// error. No status messages surround it: no client has sent it.
inline constexpr std::string_view kAdoptRequest = "cellkeep_adopt_request";

}  // namespace cellkeep::protocol
