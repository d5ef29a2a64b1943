// SPDX-License-Identifier: Apache-2.0
//
// What the store notes beside an image, as record.json. Values.
#pragma once

#include "kernel-manager/image/image_recipe.hpp"
#include "protocol/support/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::image {

enum class Format {
    kErofs,  // one file that the kernel mounts; the server must be root
    kTree,   // a directory of copies
};

std::string_view to_string(Format format);  // "erofs", "tree"

struct ImageRecord {
    std::string digest;  // of the manifest: what is in it
    Kind kind = Kind::kEnvironment;
    Format format = Format::kTree;
    std::string fingerprint;  // of the recipe it was made by
    std::string origin;       // of the recipe, too; "" if an older version made it
    std::string file_sha256;  // kErofs: of the image file
    std::string identity;     // of the inodes when their contents were last read and found right
    std::uint64_t bytes = 0;  // on disk
    std::string built_at;     // ISO 8601

    std::string to_json() const;
    /// kProtocol if a field is missing, unknown or out of range.
    static Result<ImageRecord> parse(std::string_view json);
};

}  // namespace cellkeep::image
