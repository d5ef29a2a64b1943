// SPDX-License-Identifier: Apache-2.0
//
// std::cin, scanf and getchar of cells: lines that the client is asked for.
#pragma once

#include "kernels/cpp/process/channel.hpp"

namespace cellkeep::cpp {

/// Puts a stdin in place that asks over `channel`, which lives as long as the process, and makes
/// stdout one that is written out line by line.
void install_console(Channel& channel);

/// Whether this thread may ask from now on; no other may. If not, cells read an end of file at
/// once, and a sentence on stderr says why.
void allow_input(bool allowed);

}  // namespace cellkeep::cpp
