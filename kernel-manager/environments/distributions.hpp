// SPDX-License-Identifier: Apache-2.0
//
// The Python packages in a folder of packages, as their metadata tells it (PEP 376, core metadata).
// Nothing of them runs. Values; any thread.
#pragma once

#include "protocol/support/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// A folder with more is refused.
inline constexpr std::size_t kDistributionsMax = 2000;

struct Distribution {
    std::string version;
    std::vector<std::string> needs;  // names, without what only extras need
};

/// By normalised name.
using Distributions = std::map<std::string, Distribution>;

/// "Zope.Interface" is "zope-interface" (PEP 503).
std::string normalised(std::string_view name);

/// None for a folder that is not there. kLimitExceeded beyond kDistributionsMax.
Result<Distributions> find_distributions(const std::string& packages);

/// Those of these names that are there and all that they need, by name.
Distributions closure(const Distributions& all, const std::vector<std::string>& names);

/// The packages that the Python kernel itself asks for.
const std::vector<std::string>& kernel_packages();

/// What the Python kernel itself needs of the default environment; with their versions these are
/// constraints of every named one, because it runs in there, too.
Result<Distributions> kernel_distributions(const std::string& packages);

}  // namespace cellkeep::environments
