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

/// Asks a kernel for a copy of its process that sleeps (sandbox/inside/copy/sleeping_copy.hpp):
/// content {"on_threads": "carry", "refuse" or "drop"}, and with the frame's first byte one
/// descriptor, the copy's end of a SOCK_SEQPACKET pair (SCM_RIGHTS, unix(7)). Reply
/// cellkeep_checkpoint_reply: {"status": "ok", "pid": its number inside, "execution_count",
/// "carried_threads": how many go on in it, "goes_on": whether something of the interpreter's own
/// thread runs between requests, "lost": {"threads", "children", "sockets", "shared_mappings"}},
/// each a count of what the copy does not have for itself, or {"status": "error", "ename":
/// "NotForkable", "evalue": a word of kNotForkable…, "count"}. No status messages surround it.
inline constexpr std::string_view kCheckpointRequest = "cellkeep_checkpoint_request";

inline constexpr std::string_view kNotForkable = "NotForkable";
inline constexpr std::string_view kNotForkableLanguage = "language";  // it has no such thing
/// count: how many others; "carries": false if they could not go on in a copy in any case.
inline constexpr std::string_view kNotForkableThreads = "threads";
/// "name": of a thread that could not be stopped, count: its number.
inline constexpr std::string_view kNotForkableThread = "thread";
inline constexpr std::string_view kNotForkableDebugger = "debugger";  // it was used
inline constexpr std::string_view kNotForkableSystem = "system";  // count: the errno of the fork

}  // namespace cellkeep::protocol
