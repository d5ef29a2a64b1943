// SPDX-License-Identifier: Apache-2.0
//
// Messages of E2B's process.Process (spec/envd/process/process.proto, as JSON) and what they mean
// here. Pure.
#pragma once

#include "kernel-manager/process/command.hpp"
#include "kernel-manager/process/command_table.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace cellkeep::e2b {

/// A StartRequest. kInvalidArgument.
Result<process::CommandOrder> parse_start(const nlohmann::json& request);
/// The command that a ProcessSelector means: a number or a tag, of those that run. kNotFound,
/// kInvalidArgument.
Result<std::shared_ptr<process::Command>> select_process(
    const nlohmann::json& selector, const process::CommandTable& table);
/// The bytes of a ProcessInput, for stdin or a terminal. kInvalidArgument.
Result<std::string> parse_input(const nlohmann::json& input);
/// A PTY's size. kInvalidArgument.
Result<process::TerminalSize> parse_terminal_size(const nlohmann::json& pty);

nlohmann::json start_event(const process::CommandInfo& info);
nlohmann::json data_event(
    const process::CommandInfo& info, process::Stream stream, std::string_view bytes);
nlohmann::json keepalive_event();
nlohmann::json end_event(const process::CommandEnd& end);
nlohmann::json process_json(const process::CommandInfo& info);

}  // namespace cellkeep::e2b
