// SPDX-License-Identifier: Apache-2.0
//
// Detached mounts of host files that a guest may see: a clone of a tree, or one directory over
// another. All are read-only without set-user-ID programs and without devices, and are seen nowhere
// until they are attached. Rules of child_setup.hpp apply: errno results, no allocation.
#pragma once

#include "sandbox/shared/plan.hpp"

#include <cstdint>

namespace cellkeep::sandbox {

/// source, or the file itself if directory_fd is one and source is empty. attributes: MOUNT_ATTR_…
/// The caller owns tree_fd.
int clone_tree(int directory_fd, const char* source, std::uint64_t attributes, int& tree_fd);

/// The directory path.over with that of path.source beneath it, as an overlay that nothing can
/// write to (the kernel's documentation, filesystems/overlayfs.rst). A missing source that is
/// optional leaves path.over alone; a missing path.over is ENOENT. Submounts of either are not
/// shown. The file systems and /proc must be there for the overlay to open its directories, which
/// it does by descriptor. The caller owns tree_fd.
int lay_over(const PlanReadOnlyPath& path, std::uint64_t attributes, int& tree_fd);

}  // namespace cellkeep::sandbox
