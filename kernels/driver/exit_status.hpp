// SPDX-License-Identifier: Apache-2.0
//
// How a process has ended, as waitpid(2) reports it.
#pragma once

#include <string>

namespace cellkeep::kernels::driver {

/// "by signal 9" or "with exit code 1".
std::string describe_exit(int status);

/// Ends this process in the same way: by the same signal, or with the same exit code. Runs no
/// atexit handlers.
[[noreturn]] void exit_like(int status);

}  // namespace cellkeep::kernels::driver
