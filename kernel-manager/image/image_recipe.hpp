// SPDX-License-Identifier: Apache-2.0
//
// What goes into an image, and a cheap fingerprint that changes when it does. Two images make a
// session: the environment (the system's programs and libraries and the Python environment: large,
// rarely changed) and the kernel's own programs (small, changed by every build).
#pragma once

#include "kernel-manager/image/tree_writer.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::image {

enum class Kind { kEnvironment, kPrograms };

std::string_view to_string(Kind kind);  // "environment", "programs"

/// One step of making an image: what TreeWriter's function of the same name takes.
struct Copy {
    enum class How { kEntry, kFile, kTree } how = How::kEntry;
    std::string source;
    std::string target;
    bool operator==(const Copy&) const = default;
};

/// By what an image is found.
struct RecipeKey {
    Kind kind = Kind::kEnvironment;
    std::string fingerprint;  // 64 hexadecimal digits: of what goes in, as it is now
    /// 64 hexadecimal digits: of where it comes from. An image of the same origin and another
    /// fingerprint is an older state of the same environment. Empty: not told.
    std::string origin;
    /// digest_of() the default packages and all they need; "" where there are none.
    std::string packages = {};
};

/// By what an image is made, too.
struct Recipe : RecipeKey {
    std::vector<Copy> copies;
};

/// Something of the operator's that is put into an image besides, whole.
struct Addition {
    std::string source;  // a file or a directory
    std::string target;  // relative to the image
};

/// Adds a step for each.
void copy_additions(const std::vector<Addition>& additions, Recipe& recipe);

/// The Python kernel's program and the folder of its package, and what other kernels are.
Result<Recipe> programs_recipe(
    const std::string& kernel_program,
    const std::string& package_dir,
    const std::vector<Addition>& additions = {});

/// Carries the recipe out.
Status copy_all(const Recipe& recipe, TreeWriter& writer);

}  // namespace cellkeep::image
