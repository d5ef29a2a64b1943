// SPDX-License-Identifier: Apache-2.0
//
// What a command of ours shows, on a descriptor that it shares with other programs.
#pragma once

#include <string_view>

namespace cellkeep::cli {

/// Writes all of the text. Waits for who reads it, as long as that takes, also if another program
/// has made the descriptor non-blocking: a terminal's flags are common to all who have it open.
/// Drops the rest if the other end is closed. The process must ignore SIGPIPE. Blocks.
void show_all(int fd, std::string_view text) noexcept;

}  // namespace cellkeep::cli
