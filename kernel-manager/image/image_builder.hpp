// SPDX-License-Identifier: Apache-2.0
//
// Makes one image in a directory of its own, ready to be renamed into the store: all of it written
// and on disk, or an error. The caller owns the directory and removes it after a failure. What a
// build that was killed left there is gone on with.
#pragma once

#include "kernel-manager/image/image_record.hpp"
#include "protocol/support/result.hpp"

#include <functional>
#include <string>

namespace cellkeep::image {

/// A line for people about what takes long.
using Progress = std::function<void(const std::string&)>;

/// Whether this process can make image files (mkfs.erofs of Debian's erofs-utils) and mount them.
bool can_build_erofs();

/// directory exists and is this user's own. It is empty, or holds what a build of the same recipe
/// and format left that was killed since the machine started.
Result<ImageRecord> build_image(
    const std::string& directory, const Recipe& recipe, Format format, const Progress& progress);

}  // namespace cellkeep::image
