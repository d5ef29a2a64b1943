// SPDX-License-Identifier: Apache-2.0
//
// std::cin, scanf and getchar of cells: lines that the client is asked for.
#pragma once

#include "kernels/cpp/process/channel.hpp"

namespace cellkeep::cpp {

/// Replaces stdin by one that asks the client over `channel`, and makes stdout line-buffered.
/// `channel` must live as long as the process.
void install_console(Channel& channel);

/// Sets whether this thread may ask from now on; other threads may not. If it may not, cells read
/// an end of file at once, and a sentence on stderr says why.
void allow_input(bool allowed);

}  // namespace cellkeep::cpp
