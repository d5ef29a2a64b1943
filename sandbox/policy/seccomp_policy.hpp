// SPDX-License-Identifier: Apache-2.0
//
// The system calls that code in a session may make: an allowlist, compiled by libseccomp once per
// server and installed by pid 1 as its last step. Anything not listed answers EPERM, so that a
// program sees an error and not a death; a call newer than the list answers ENOSYS, so that a C
// library falls back; a call of a foreign architecture (i386, x32) kills.
#pragma once

#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::sandbox {

/// The program as an array of struct sock_filter. The first call compiles it (about a millisecond).
/// branches: of a sandbox whose processes may leave for others; what takes capabilities away is
/// refused as ever, but handed to pid 1. Thread-safe.
Result<std::string> seccomp_program(bool branches = false);

}  // namespace cellkeep::sandbox
