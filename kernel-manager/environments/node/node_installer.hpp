// SPDX-License-Identifier: Apache-2.0
//
// Has npm install packages of Node.js into an environment: from one registry, without scripts, so
// that nothing of a package runs (docs/decisions/0029-packages-of-node.md). Blocks: not for the
// event loop.
#pragma once

#include "kernel-manager/environments/node/node_manifest.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace cellkeep::environments {

/// Beneath an environment: a folder with node_modules.
inline constexpr const char* kNodeFolder = "/node";
inline constexpr const char* kNodeModules = "/node_modules";

/// What an environment asks npm for.
struct NodeOrder {
    NodeDependencies dependencies;         // none: then npm is not run
    std::optional<std::string> lock = {};  // a package-lock.json; else the newest that fit
    std::string npm = {};                  // the program
    std::string registry = {};             // an address; "": npm's own
};

/// How the registry that npm has by itself is shown.
inline constexpr const char* kDefaultRegistry = "npm's registry";
/// As it may be shown: without a user's name and password.
std::string shown_registry(const std::string& registry);

/// $CELLKEEP_NPM, else npm on $PATH. kUnavailable says where to get it.
Result<std::string> find_npm();

struct NodeInstallation {
    std::string directory;  // gets node_modules; must not exist
    std::string scratch;    // holds the directory, and all else that is written
    std::chrono::steady_clock::time_point deadline;
    std::uint64_t bytes_max = 0;  // of the scratch directory
};

/// Versions by the place beneath node_modules. kUnavailable with what npm says if the packages
/// cannot be had; kInvalidArgument for one that is not of the registry.
Result<std::map<std::string, std::string>> install_node_packages(
    const NodeOrder& order, const NodeInstallation& installation);

}  // namespace cellkeep::environments
