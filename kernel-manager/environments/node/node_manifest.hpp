// SPDX-License-Identifier: Apache-2.0
//
// What a package.json asks for (npm's documentation, "package.json"): its dependencies, by name and
// with a range of versions of a registry. Everything that would lead elsewhere is refused:
// addresses, repositories, folders, other packages' names. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace cellkeep::environments {

inline constexpr std::size_t kNodeManifestBytesMax = 256UL << 10U;
inline constexpr std::size_t kNodeDependenciesMax = 500;
inline constexpr std::size_t kNodeLockBytesMax = 8UL << 20U;
/// npm's own bound for a name ("package.json", name).
inline constexpr std::size_t kNodeNameBytesMax = 214;
inline constexpr std::size_t kNodeRangeBytesMax = 256;
/// Packages that were installed.
inline constexpr std::size_t kNodePackagesMax = 5000;

/// Ranges by name: {"lodash", "^4.17.0"}.
using NodeDependencies = std::map<std::string, std::string>;

/// kInvalidArgument names what is not taken; kLimitExceeded beyond the bounds. What only the
/// development of the project needs is left out, and so is all that npm would run.
Result<NodeDependencies> read_node_manifest(std::string_view text);
/// A package.json with these and nothing else.
std::string node_manifest_of(const NodeDependencies& dependencies);

/// A lock that is safe to install from: what packages say in one can make npm follow links and
/// folders of this machine.
struct NodeLock {
    std::string text;                             // a package-lock.json with these and nothing else
    std::map<std::string, std::string> versions;  // by the place beneath node_modules
    /// Programs of the packages that are asked for by name: their files, beneath node_modules.
    std::map<std::string, std::string> programs;
};

/// A package-lock.json of version 2 or 3 (npm's documentation, "package-lock.json"). What only
/// development needs is left out. kInvalidArgument if a package is not of a registry or has no
/// hash, for a link, a place outside of node_modules and a package with a lock of its own.
Result<NodeLock> check_node_lock(std::string_view text, const NodeDependencies& dependencies);

}  // namespace cellkeep::environments
