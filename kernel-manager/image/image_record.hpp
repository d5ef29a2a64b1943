// SPDX-License-Identifier: Apache-2.0
//
// What the store notes beside an image, as record.json. Values.
#pragma once

#include "kernel-manager/image/image_recipe.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::image {

enum class Format {
    kErofs,  // one file that the kernel mounts; the server must be root
    kTree,   // a directory of copies
};

std::string_view to_string(Format format);  // "erofs", "tree"

/// A record names so many recipes whose image is the same. Beyond it the oldest is forgotten: its
/// image is then made once more, and found to be this one.
inline constexpr std::size_t kOtherRecipesMax = 8;

/// A recipe, as a record names it.
struct RecipeName {
    std::string fingerprint;
    std::string origin;  // "" if an older version made the image
};

struct ImageRecord {
    std::string digest;  // of the manifest: what is in it
    Kind kind = Kind::kEnvironment;
    Format format = Format::kTree;
    std::string fingerprint;  // of the recipe it was made by
    std::string origin;       // of the recipe, too; "" if an older version made it
    std::string packages;     // likewise
    std::string file_sha256;  // kErofs: of the image file
    std::string identity;     // of the inodes when their contents were last read and found right
    std::uint64_t bytes = 0;  // on disk
    std::string built_at;     // ISO 8601
    /// Other recipes that gave the same contents, the newest first: two source trees with equal
    /// environments, for instance.
    std::vector<RecipeName> other_recipes;

    bool made_by(const std::string& fingerprint_of_recipe) const;
    /// False for an empty origin.
    bool comes_from(const std::string& origin_of_recipe) const;
    /// From now on `recipe` is the one it was made by last.
    void note_recipe(const RecipeName& recipe);

    std::string to_json() const;
    /// kProtocol if a field is missing, unknown or out of range.
    static Result<ImageRecord> parse(std::string_view json);
};

}  // namespace cellkeep::image
