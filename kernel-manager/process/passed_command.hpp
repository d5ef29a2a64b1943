// SPDX-License-Identifier: Apache-2.0
//
// The commands of a session on their way from one program in the server's process to another: what
// each is, what it has written and has still to read, and the server's ends of its pipes. The
// processes notice nothing. Values and descriptors.
#pragma once

#include "kernel-manager/process/command.hpp"
#include "kernel-manager/process/command_ends.hpp"
#include "kernel-manager/process/command_output.hpp"
#include "sandbox/sandbox.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::process {

struct PassedCommand {
    CommandInfo info;
    CommandOutput output;
    CommandEnds ends;
    sandbox::WorkerId worker = 0;  // 0: it has ended
    bool forget = false;           // as soon as it has ended
    WhenFull when_full = WhenFull::kDrop;
    std::uint64_t read = 0;  // the furthest place that a reader has come to
    /// Beginnings of characters that were read from its pipes.
    std::string out_rest;
    std::string err_rest;
    struct Input {
        std::string waiting;
        bool finishing = false;  // its end comes behind what waits
    };
    std::optional<Input> input = std::nullopt;  // none: it never had one
};

struct PassedCommands {
    std::vector<PassedCommand> commands;  // as they were started
    std::vector<std::string> ended;       // ids, as they have ended
};

}  // namespace cellkeep::process
