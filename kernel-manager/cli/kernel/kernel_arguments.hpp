// SPDX-License-Identifier: Apache-2.0
//
// The command lines of `cellkeep kernel` and `cellkeep kernelspec`, and nothing else.
#pragma once

#include "kernel-manager/cli/kernel/kernel.hpp"
#include "kernel-manager/cli/kernel/kernelspec_command.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// The arguments of both commands. Must outlive the parsing.
struct KernelArguments {
    KernelCommand kernel;
    KernelspecInstall install;
    KernelspecPlace remove;
    std::vector<std::string> ignored;
};

void add_kernel_commands(CLI::App& app, KernelArguments& arguments);

/// The exit code of whichever of the two the command line names; nothing if it names neither.
std::optional<int> run_kernel_commands(const CLI::App& app, const KernelArguments& arguments);

}  // namespace cellkeep::cli
