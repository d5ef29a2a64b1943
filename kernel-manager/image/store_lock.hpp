// SPDX-License-Identifier: Apache-2.0
//
// The locks of an image store, between processes (flock(2)): released when the descriptor closes.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <optional>
#include <string>

namespace cellkeep::image {

/// Makes the file if it is missing. Never through a link.
Result<UniqueFd> open_lock(const std::string& path);
/// operation: as flock(2) takes it. Waits, or, with LOCK_NB, gives false if another process has it.
Result<bool> lock_file(int fd, int operation);
/// The lock of the image in that directory, or nullopt while a process uses the image.
Result<std::optional<UniqueFd>> claim_unused(const std::string& directory);

}  // namespace cellkeep::image
