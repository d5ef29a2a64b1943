// SPDX-License-Identifier: Apache-2.0
//
// Where an image store makes its images and puts what it removes: directories in the store that are
// in no list. A build that is killed leaves its own behind. The next build of the same recipe goes
// on in it if the machine has not started anew meanwhile: what was written before a start may not
// have reached the disk, though the file system says so.
#pragma once

#include "kernel-manager/image/image_record.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <utility>

namespace cellkeep::image {

/// The record of a damaged image that somebody still uses: it is in no list any more.
inline constexpr const char* kDamagedRecord = "damaged.json";

/// The name of the directory for an image of this recipe and format.
Result<std::string> scratch_name(const Recipe& recipe, Format format);
/// A name that no build goes on with.
Result<std::string> trash_name();

/// Removes the directory of the store if no process can begin to use it, and none does: what is
/// half made or half removed, and what is damaged. `kind` is the one whose builds the caller keeps
/// out, `kept` the name that it goes on with.
Status remove_dead(const std::string& directory, Kind kind, const std::string& kept);
Status remove_tree(const std::string& path);

/// Removes what is at the path when it goes. Nothing is there any more if the build came to its
/// end.
class Scratch {
 public:
    explicit Scratch(std::string path) : path_(std::move(path)) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    Scratch(Scratch&&) = delete;
    Scratch& operator=(Scratch&&) = delete;
    // Ignored: the next build removes it.
    ~Scratch() { (void)remove_tree(path_).has_value(); }
    const std::string& path() const { return path_; }

 private:
    std::string path_;
};

}  // namespace cellkeep::image
