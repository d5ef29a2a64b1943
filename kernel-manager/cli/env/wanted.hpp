// SPDX-License-Identifier: Apache-2.0
//
// What an environment is to have, as the files say that the command line names.
#pragma once

#include "kernel-manager/cli/env/environments.hpp"
#include "kernel-manager/environments/debian/debian_order.hpp"
#include "kernel-manager/environments/node/node_installer.hpp"
#include "protocol/support/result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

struct Wanted {
    std::string requirements = {};                     // of Python, a line for each; or ""
    std::optional<std::string> python = std::nullopt;  // of a conda file
    environments::NodeOrder node = {};
    environments::DebianOrder debian = {};  // but for what sessions have besides
};

/// Where its programs are. kUnavailable, kInvalidArgument.
Result<environments::DebianOrder> debian_order_of(const std::vector<std::string>& packages);

/// Reads the files. kInvalidArgument, with the option's name, for what is not taken.
Result<Wanted> read_wanted(const EnvCreate& command);

}  // namespace cellkeep::cli
