// SPDX-License-Identifier: Apache-2.0
//
// The server's ends of a command's pipes, or of its terminal, on their way from one program in the
// server's process to another. Descriptors; one that the command has not got is none.
#pragma once

#include "protocol/support/unique_fd.hpp"

namespace cellkeep::process {

struct CommandEnds {
    UniqueFd input;
    UniqueFd out;  // or what reads the terminal
    UniqueFd err;
    UniqueFd controller;  // of the terminal, for its size
};

}  // namespace cellkeep::process
