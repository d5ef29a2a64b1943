// SPDX-License-Identifier: Apache-2.0
//
// The terminal that a command of ours runs in: its size, and its keys unread by itself. Owns the
// terminal's mode for as long as it lives.
#pragma once

#include "kernel-manager/process/terminal.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <termios.h>

#include <optional>

namespace cellkeep::cli {

/// Nothing if the descriptor is no terminal.
std::optional<process::TerminalSize> local_terminal_size(int fd);

/// Standard input, to be watched by Asio, which makes it non-blocking. A terminal is opened anew:
/// otherwise the output to it would not block either, nor would that of other programs there
/// (open(2): the flags belong to the open file description). Anything else is a duplicate. Invalid
/// if it is closed.
UniqueFd open_own_input();

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
