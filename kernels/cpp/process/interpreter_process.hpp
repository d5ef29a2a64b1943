// SPDX-License-Identifier: Apache-2.0
//
// The process that has the cells' state: takes requests from the channel, one after another.
#pragma once

#include "kernels/cpp/process/channel.hpp"

#include <sys/types.h>

#include <string>

namespace cellkeep::cpp {

/// Starts the compiler, sends ready, and serves until the channel ends. Returns the exit code.
/// `folder`: the language's folder, with include/ and preamble.pch.
int run_interpreter(Channel& channel, pid_t supervisor, const std::string& folder);

}  // namespace cellkeep::cpp
