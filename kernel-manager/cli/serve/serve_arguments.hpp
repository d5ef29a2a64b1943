// SPDX-License-Identifier: Apache-2.0
//
// The command line of `cellkeep serve`, and nothing else.
#pragma once

#include "kernel-manager/cli/commands.hpp"

#include <CLI/CLI.hpp>

namespace cellkeep::cli {

/// The command must outlive the parsing.
void add_serve(CLI::App& app, ServeCommand& command);

}  // namespace cellkeep::cli
