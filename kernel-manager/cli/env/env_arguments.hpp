// SPDX-License-Identifier: Apache-2.0
//
// The command line of `cellkeep env`, and nothing else.
#pragma once

#include "kernel-manager/cli/env/environments.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace cellkeep::cli {

/// Must outlive the parsing.
struct EnvArguments {
    EnvCreate create;
    EnvUpdate update;
    std::string name;  // of show, export and remove
    bool as_json = false;
};

void add_env_commands(CLI::App& app, EnvArguments& arguments);

/// The exit code, or nothing if the command line names another command.
std::optional<int> run_env_commands(const CLI::App& app, const EnvArguments& arguments);

}  // namespace cellkeep::cli
