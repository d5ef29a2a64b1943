// SPDX-License-Identifier: Apache-2.0
//
// The images of one user on one host, in a private directory (0700). One rename makes a complete
// image appear there. An image is removed only while no process uses it. Several processes may use
// the store: there is a short lock on the list, one for the builds of each kind, and one on each
// image for its users (flock(2), so the kernel releases them when a process dies). The next build
// goes on with what a killed build of the same recipe has copied since the machine started, and
// removes what other killed builds of its kind left behind.
#pragma once

#include "kernel-manager/image/image_builder.hpp"
#include "kernel-manager/image/image_record.hpp"
#include "kernel-manager/image/image_retention.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::image {

/// An image that is verified, mounted if it has to be, and kept from removal while this lives.
struct ImageInUse {
    ImageRecord record;
    std::string root;  // its files
    std::shared_ptr<const UniqueFd> lease;
};

class Store {
 public:
    /// Makes the directory if it is missing. kPermissionDenied if it belongs to or is open to
    /// others.
    static Result<Store> open(const std::string& directory);

    /// Last used first. What is not whole is left out.
    Result<std::vector<StoredImage>> list() const;

    /// The newest image of this recipe and format, or nullopt.
    Result<std::optional<ImageRecord>> find(const RecipeKey& recipe, Format format) const;
    /// The image is what this recipe gives, too.
    Status note_recipe(const ImageRecord& record, const RecipeKey& recipe);
    /// The newest image of this recipe's origin, whatever its fingerprint is, or nullopt.
    Result<std::optional<ImageRecord>> find_same_origin(
        const RecipeKey& recipe, Format format) const;
    /// kNotFound if there is none; digest may be the beginning of one, with or without "sha256:",
    /// if only one image has it (kConflict else).
    Result<ImageRecord> find(const std::string& digest, std::optional<Kind> kind) const;

    /// Verifies it first (image_verify.hpp). kProtocol if it is damaged; then it is removed unless
    /// somebody else still uses it.
    Result<ImageInUse> use(const ImageRecord& record);

    /// The image of the recipe, made now unless another process has made it meanwhile. Then removes
    /// the oldest beyond what is kept.
    Result<ImageRecord> build(const Recipe& recipe, Format format, const Progress& progress);

    /// kConflict if it is in use.
    Status remove(const ImageRecord& record);
    /// All that are not in use; how many were removed.
    Result<std::size_t> remove_unused();

    const std::string& directory() const { return directory_; }
    std::string directory_of(const ImageRecord& record) const;

 private:
    explicit Store(std::string directory) : directory_(std::move(directory)) {}
    Result<UniqueFd> lock(const char* name) const;
    /// The caller holds the lock of the list, so that no name appears or goes.
    Result<std::vector<ImageRecord>> records() const;
    Status take_in(const std::string& built, const ImageRecord& record);
    Status collect_garbage();

    std::string directory_;
};

/// $CELLKEEP_IMAGE_DIR, else $XDG_CACHE_HOME/cellkeep/images, else $HOME/.cache/cellkeep/images.
Result<std::string> default_store_directory();

}  // namespace cellkeep::image
