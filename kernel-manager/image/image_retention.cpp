// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_retention.hpp"

namespace cellkeep::image {

std::vector<StoredImage> images_to_remove(
    const std::vector<StoredImage>& images, std::chrono::system_clock::time_point now) {
    std::vector<StoredImage> removed;
    std::size_t environments = 0;
    std::size_t programs = 0;
    std::uint64_t bytes = 0;
    for (const StoredImage& image : images) {
        const bool is_environment = image.record.kind == Kind::kEnvironment;
        const std::size_t rank = is_environment ? ++environments : ++programs;
        const std::size_t kept = is_environment ? kEnvironmentImagesKept : kProgramImagesKept;
        const bool is_recent =
            image.last_used >= now - kRecentUse && bytes + image.record.bytes <= kRecentBytesMax;
        if (image.in_use || rank <= kept || is_recent) {
            bytes += image.record.bytes;
        } else {
            removed.push_back(image);
        }
    }
    return removed;
}

}  // namespace cellkeep::image
