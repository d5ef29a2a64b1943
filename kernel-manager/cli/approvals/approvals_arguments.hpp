// SPDX-License-Identifier: Apache-2.0
//
// The command line of `cellkeep approvals`, and nothing else.
#pragma once

#include "kernel-manager/cli/approvals/approvals.hpp"

#include <CLI/CLI.hpp>

#include <optional>

namespace cellkeep::cli {

/// The command must outlive the parsing.
void add_approvals_commands(CLI::App& app, ApprovalsCommand& command);

/// The exit code, or nothing if the command line names another command.
std::optional<int> run_approvals_commands(const CLI::App& app, const ApprovalsCommand& command);

}  // namespace cellkeep::cli
