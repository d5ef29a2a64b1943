// SPDX-License-Identifier: Apache-2.0
//
// The bodies of the process routes. Pure.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/process/command.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::api {

struct InputOrder {
    std::string bytes;
    bool close = false;  // after them
};

// Each fills errors; the value counts only if there are none.
process::CommandOrder parse_command_order(const nlohmann::json& body, FieldErrors& errors);
InputOrder parse_input_order(const nlohmann::json& body, FieldErrors& errors);
process::TerminalSize parse_size_order(const nlohmann::json& body, FieldErrors& errors);
/// The number of the signal that the body names: "SIGINT" or "INT".
int parse_signal_order(const nlohmann::json& body, FieldErrors& errors);

}  // namespace cellkeep::api
