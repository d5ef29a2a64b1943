// SPDX-License-Identifier: Apache-2.0
//
// Requests of the server's own on the control channel of the kernel link; no client can send them,
// because of clients' control requests only debug_request reaches a kernel.
#pragma once

#include <string_view>

namespace cellkeep::protocol {

/// Makes a waiting kernel that was started for nobody somebody's: content {"env": {NAME: value},
/// "working_directory": absolute path or ""}, reply cellkeep_adopt_reply {"status": "ok"} or an
/// error. No status messages around it: it is nobody's news.
inline constexpr std::string_view kAdoptRequest = "cellkeep_adopt_request";

}  // namespace cellkeep::protocol
