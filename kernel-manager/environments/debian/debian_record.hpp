// SPDX-License-Identifier: Apache-2.0
//
// What is noted of an environment's packages of Debian. Values.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cellkeep::environments {

struct DebianRecord {
    std::vector<std::string> wanted;              // what was asked for: "graphviz", "jq=1.6-2.1"
    std::map<std::string, std::string> packages;  // what is there besides the image's, by name
    std::vector<std::string> scripts_not_run;     // packages whose setup does more than was done
    std::string release;                          // what they are for: "debian bookworm"
    std::vector<std::string> library_folders;     // that the loader does not look in by itself
    /// What they were chosen beside (image::RecipeKey::packages); "": not noted.
    std::string image_packages = {};
};

}  // namespace cellkeep::environments
