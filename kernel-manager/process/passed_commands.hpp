// SPDX-License-Identifier: Apache-2.0
//
// The commands of a session that are over, written down for another program in the server's process
// and read again.
#pragma once

#include "kernel-manager/process/command_table.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::process {

/// Texts in it are the bytes that they are: no JSON text can be made of it, CBOR can. Precondition:
/// CommandTable::are_over().
nlohmann::json write_commands(const CommandTable& table);

/// Throws nlohmann::json::exception for what is not of that form.
void read_commands(const nlohmann::json& text, CommandTable& table);

}  // namespace cellkeep::process
