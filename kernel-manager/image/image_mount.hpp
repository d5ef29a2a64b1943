// SPDX-License-Identifier: Apache-2.0
//
// Mounts an image file for this process alone, in a mount namespace of the server's own. The host
// does not see the mount, and the kernel unmounts it when the server ends, however it ends.
#pragma once

#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::image {

/// Whether this process may mount, and the kernel knows the format. Loads its module if need be.
bool can_mount_erofs();

/// Moves the calling thread, and the threads that it makes later, into a mount namespace of their
/// own, in which what is mounted on the host later still appears. Once: later calls do nothing.
/// Call it on the main thread before others exist; after that, any thread may mount.
Status enter_own_mount_namespace();

/// Mounts the image file behind the descriptor at mount_point, read-only, nosuid, nodev. Calls
/// enter_own_mount_namespace(). Uses the file itself where the kernel can (6.12), else a loop
/// device.
Status mount_erofs(int image_fd, const std::string& mount_point);

}  // namespace cellkeep::image
