// SPDX-License-Identifier: Apache-2.0
//
// The command line of `cellkeep image`, and nothing else.
#pragma once

#include "kernel-manager/cli/image.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace cellkeep::cli {

/// Must outlive the parsing.
struct ImageArguments {
    ImageBuild build;
    bool list_as_json = false;
    ImageRemove remove;
    std::string verify_digest;
};

void add_image_commands(CLI::App& app, ImageArguments& arguments);

/// The exit code, or nothing if the command line names another command.
std::optional<int> run_image_commands(const CLI::App& app, const ImageArguments& arguments);

}  // namespace cellkeep::cli
