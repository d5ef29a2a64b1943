// SPDX-License-Identifier: Apache-2.0
//
// Shells on their way from one program in the server's process to another. Their commands pass with
// their sessions. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace cellkeep::swerex {

struct PassedShell {
    std::string command;  // its id
    std::string prompt;
    std::uint64_t place = 0;     // of the command's output that was read
    std::string said;            // and not told
    std::uint64_t left_out = 0;  // bytes that went before that
};
/// By session and name.
using PassedShells = std::map<std::string, std::map<std::string, PassedShell>>;

nlohmann::json write_shells(const PassedShells& shells);
/// kProtocol: another form, or shells that no session has.
Result<PassedShells> read_shells(const nlohmann::json& text);

}  // namespace cellkeep::swerex
