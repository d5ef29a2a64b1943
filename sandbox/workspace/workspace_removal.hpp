// SPDX-License-Identifier: Apache-2.0
//
// Removes a directory of a workspace with everything in it, as the guest could, never through a
// link and never outside. The guest may fill it again meanwhile: named bounds end the removal.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <string>

namespace cellkeep::sandbox {

inline constexpr std::size_t kRemovedEntriesMax = 20'000;
/// Directories that are open at once; what is deeper is moved up first.
inline constexpr std::size_t kRemovedDepthMax = 256;

/// A file too. kNotFound; kLimitExceeded past a bound, then part of it is gone; kConflict if the
/// guest fills it faster than it is emptied. path must not be empty.
Status remove_all(const Workspace& workspace, const std::string& path);

}  // namespace cellkeep::sandbox
