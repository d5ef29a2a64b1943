// SPDX-License-Identifier: Apache-2.0
//
// The recipe of the environment: the system's programs and libraries, by Debian package where there
// are such, and the Python environment. Values; any thread.
#pragma once

#include "kernel-manager/image/image_recipe.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <vector>

namespace cellkeep::image {

/// Where the environment's parts are on the host; "" in front of system paths but in tests.
struct EnvironmentSources {
    std::string root;                      // in front of /usr, /etc and /var
    std::string python_environment;        // a virtual environment
    std::vector<std::string> packages;     // Debian's, and what they need
    std::vector<Addition> additions = {};  // programs and packages of languages
};

/// The Debian packages of a session by default: a shell and its tools, Python, C and C++ compilers,
/// git, curl, certificates, fonts.
const std::vector<std::string>& default_packages();

/// By package where dpkg knows them; on other systems all of /usr/bin, /usr/lib and some data.
/// Looks at each file of each package: a tenth of a second.
Result<Recipe> environment_recipe(const EnvironmentSources& sources);

/// The key of that recipe, at a fraction of its cost: the versions of packages stand for their
/// files.
Result<RecipeKey> environment_key(const EnvironmentSources& sources);

}  // namespace cellkeep::image
