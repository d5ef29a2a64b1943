// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep image`: the private images that sessions run from. Each command returns the exit code.
#pragma once

#include "kernel-manager/image/image_store.hpp"

#include <string>
#include <vector>

namespace cellkeep::cli {

struct ImageBuild {
    std::vector<std::string> packages;  // Debian's, besides the default ones
    std::vector<std::string> kernels;   // serve/service_setup.hpp
    std::vector<std::string> foreign_kernels;
};
int image_build(const ImageBuild& command);

int image_list(bool as_json);

struct ImageRemove {
    std::string digest;
    bool unused = false;  // instead of a digest
};
int image_remove(const ImageRemove& command);

/// Reads all of it, whatever its inodes say. Without a digest: every image.
int image_verify(const std::string& digest);

/// Pure: the table and the JSON of image_list().
std::string image_table(const std::vector<image::StoredImage>& images);
std::string image_json(const std::vector<image::StoredImage>& images);

}  // namespace cellkeep::cli
