// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_retention.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace cellkeep::image {
namespace {

const std::chrono::system_clock::time_point kNow{std::chrono::hours(24 * 365)};

/// Images of programs, all used an hour ago; the first is the one used last.
std::vector<StoredImage> stored_images(std::size_t count, std::uint64_t bytes) {
    std::vector<StoredImage> images(count);
    for (std::size_t i = 0; i < count; ++i) {
        images[i].record.kind = Kind::kPrograms;
        images[i].record.digest = std::to_string(i);
        images[i].record.bytes = bytes;
        images[i].last_used = kNow - std::chrono::hours(1);
    }
    return images;
}

}  // namespace

TEST_CASE("recent images stay up to a number of bytes", "[image][retention]") {
    const std::size_t room = kProgramImagesKept + 2;
    CHECK(images_to_remove(stored_images(room, kRecentBytesMax / room), kNow).empty());
    const auto removed = images_to_remove(stored_images(room + 1, kRecentBytesMax / room), kNow);
    REQUIRE(removed.size() == 1);
    CHECK(removed[0].record.digest == std::to_string(room));
}

TEST_CASE("unused images are removed, but a number of each kind stays", "[image][retention]") {
    auto images = stored_images(kProgramImagesKept + 2, 1);
    for (auto& image : images) {
        image.last_used = kNow - kRecentUse - std::chrono::seconds(1);
    }
    CHECK(images_to_remove(images, kNow).size() == 2);
    images.back().last_used = kNow - kRecentUse;
    CHECK(images_to_remove(images, kNow).size() == 1);
    images[kProgramImagesKept].in_use = true;
    CHECK(images_to_remove(images, kNow).empty());
    images[kProgramImagesKept].in_use = false;
    images[kProgramImagesKept].record.kind = Kind::kEnvironment;
    CHECK(images_to_remove(images, kNow).empty());
}

}  // namespace cellkeep::image
