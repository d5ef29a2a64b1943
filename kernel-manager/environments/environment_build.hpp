// SPDX-License-Identifier: Apache-2.0
//
// Makes the files of an environment: an empty one, the packages that it asks for, and what an image
// is made of. Blocks: not for the event loop.
#pragma once

#include "kernel-manager/environments/environment_order.hpp"
#include "kernel-manager/environments/named_record.hpp"
#include "kernel-manager/image/image_builder.hpp"
#include "kernel-manager/image/image_recipe.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <vector>

namespace cellkeep::environments {

struct BuiltEnvironment {
    NamedRecord record;    // but for its digest, bytes and time
    image::Recipe recipe;  // of files in the scratch directory
};

/// scratch: an empty directory of this user alone, which outlives the recipe. Errors are those of
/// EnvironmentStore::create().
Result<BuiltEnvironment> build_environment(
    const EnvironmentOrder& order,
    const std::vector<std::string>& requirements,
    const EnvironmentBounds& bounds,
    const std::string& scratch,
    const image::Progress& progress);

}  // namespace cellkeep::environments
