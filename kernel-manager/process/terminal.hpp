// SPDX-License-Identifier: Apache-2.0
//
// Pseudo-terminals: pairs of a controller, which the server keeps, and a terminal, which a command
// gets. Thread-safe: functions without state.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

namespace cellkeep::process {

struct TerminalSize {
    unsigned rows = 24;
    unsigned columns = 80;
};

struct TerminalPair {
    UniqueFd controller;  // does not block
    UniqueFd terminal;
};

/// kSystem; with ENOSPC if the host has no more of them.
Result<TerminalPair> make_terminal(TerminalSize size);
/// The processes in front get SIGWINCH (ioctl_tty(2)). fd: either side.
Status set_terminal_size(int fd, TerminalSize size);

}  // namespace cellkeep::process
