// SPDX-License-Identifier: Apache-2.0
//
// What the fingerprint of a recipe is of: names, sizes and times of files, never their contents.
#pragma once

#include "kernel-manager/image/image_recipe.hpp"
#include "protocol/sha256.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::image {

/// Part of every fingerprint: to be raised when this folder copies something else than before.
inline constexpr std::string_view kRecipeVersion = "2";

void add_stat(protocol::Sha256& digest, const std::string& path);

/// Changes when something is put into the folder or taken out.
void add_folder_time(protocol::Sha256& digest, const std::string& path);

/// Everything beneath.
void add_tree_stat(protocol::Sha256& digest, const std::string& directory);

/// Of an environment that scripts/lib/environments.sh made only its stamp, and when packages were
/// put into it; another one is looked at file by file.
void add_environment(protocol::Sha256& digest, const std::string& environment);

void add_additions(const std::vector<Addition>& additions, protocol::Sha256& digest);

}  // namespace cellkeep::image
