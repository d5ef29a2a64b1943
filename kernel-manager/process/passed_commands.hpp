// SPDX-License-Identifier: Apache-2.0
//
// The commands of a session, written down for another program in the server's process and read
// again. Descriptors travel beside what is written here (CommandEnds), in the same order.
#pragma once

#include "kernel-manager/process/command_ends.hpp"
#include "kernel-manager/process/passed_command.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace cellkeep::process {

/// Takes the descriptors out.
std::vector<CommandEnds> take_ends(PassedCommands& passed);
/// Without descriptors. Texts in it are the bytes that they are: no JSON text can be made of it,
/// CBOR can.
nlohmann::json write_commands(const PassedCommands& passed);
/// The ids of those that have ended, as they have ended. Programs that do not know it go by the
/// order of the commands.
nlohmann::json write_ended(const PassedCommands& passed);

/// commands and ended: of the form above. No ended: null. Throws nlohmann::json::exception for what
/// is not of that form, or is more than a session can have. Descriptors that are missing are none.
PassedCommands read_commands(
    const nlohmann::json& commands, const nlohmann::json& ended, std::vector<CommandEnds> ends);

}  // namespace cellkeep::process
