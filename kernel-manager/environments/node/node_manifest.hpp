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

/// What npm says that it has installed (node_modules/.package-lock.json): versions by the place
/// beneath node_modules. kInvalidArgument if one is not of a registry, or has no hash.
Result<std::map<std::string, std::string>> read_installed(std::string_view text);

}  // namespace cellkeep::environments
