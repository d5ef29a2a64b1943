// SPDX-License-Identifier: Apache-2.0
//
// The terminal that a command of ours runs in: its size, and its keys unread by itself. Owns the
// terminal's mode for as long as it lives.
#pragma once

#include "kernel-manager/process/terminal.hpp"
#include "protocol/support/result.hpp"

#include <termios.h>

#include <optional>

namespace cellkeep::cli {

/// Nothing if the descriptor is no terminal.
std::optional<process::TerminalSize> local_terminal_size(int fd);

class RawTerminal {
 public:
    RawTerminal() = default;
    RawTerminal(const RawTerminal&) = delete;
    RawTerminal& operator=(const RawTerminal&) = delete;
    /// As it was.
    ~RawTerminal();
    /// From now on every key comes as it is pressed, Ctrl-C too (cfmakeraw(3)). kSystem.
    Status begin(int fd);

 private:
    int fd_ = -1;
    termios before_{};
};

}  // namespace cellkeep::cli
