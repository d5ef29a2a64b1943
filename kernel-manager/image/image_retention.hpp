// SPDX-License-Identifier: Apache-2.0
//
// Which images of a store stay when a new one is made. Pure functions.
#pragma once

#include "kernel-manager/image/image_record.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cellkeep::image {

/// How many images of a kind stay: those that were used last. Images in use stay in addition.
inline constexpr std::size_t kEnvironmentImagesKept = 2;
inline constexpr std::size_t kProgramImagesKept = 6;
/// Images that were used this recently stay, too, as long as all images that stay have at most
/// kRecentBytesMax bytes. So several builds of one user do not remove each other's images.
inline constexpr std::chrono::hours kRecentUse{7 * 24};
inline constexpr std::uint64_t kRecentBytesMax = 16ULL << 30U;

struct StoredImage {
    ImageRecord record;
    bool in_use = false;
    std::chrono::system_clock::time_point last_used;
};

/// The images that go. `images`: those used last come first.
std::vector<StoredImage> images_to_remove(
    const std::vector<StoredImage>& images, std::chrono::system_clock::time_point now);

}  // namespace cellkeep::image
