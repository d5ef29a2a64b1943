// SPDX-License-Identifier: Apache-2.0
//
// Moves files of a workspace and adds to them, as the guest could, never through a link and never
// outside.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <string>
#include <string_view>

namespace cellkeep::sandbox {

/// What becomes of a file that has the new path already.
enum class Taken { kRefused, kReplaced };

/// Gives a file or a directory another path. Paths are parse_workspace_path's. kNotFound if the
/// file or the directory of its new path is missing, kConflict if the new path is taken,
/// kInvalidArgument for the workspace itself and for a directory that would move into itself. With
/// kReplaced, what is no directory takes the place of what is none, in one step: after an error
/// both are there as before.
Status rename(
    const Workspace& workspace,
    const std::string& from,
    const std::string& to,
    Taken taken = Taken::kRefused);

/// A regular file to which bytes are added at its end. kNotFound; kInvalidArgument if it is not a
/// regular file or a symbolic link is in the way.
Result<UniqueFd> open_for_appending(const Workspace& workspace, const std::string& path);
/// kLimitExceeded when the workspace is full; part of the bytes may be there then.
Status append(const UniqueFd& file, std::string_view bytes);

}  // namespace cellkeep::sandbox
