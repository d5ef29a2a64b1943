// SPDX-License-Identifier: Apache-2.0
//
// What apt-get would do, as its simulation says (apt-get(8), --simulate). Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// Packages that are installed, with what those that are asked for need.
inline constexpr std::size_t kDebianPackagesMax = 1000;

struct DebianPackage {
    std::string name;
    std::string version;
    std::string architecture;  // "amd64", "all"
    bool operator==(const DebianPackage&) const = default;
};

/// The packages that would be added, in apt's order. kConflict if one that the image has would get
/// another version or go; kInvalidArgument for one of another architecture than `architecture` and
/// "all"; kLimitExceeded beyond kDebianPackagesMax; kProtocol for what cannot be understood.
Result<std::vector<DebianPackage>> read_debian_plan(
    std::string_view said, const std::string& architecture);

/// kConflict if one of the wanted, "NAME=VERSION", is among the image's packages in another
/// version: apt-get would leave it out without a word. there: the image's versions by name.
Status check_versions_there(
    const std::vector<std::string>& wanted, const std::map<std::string, std::string>& there);

/// The file that apt-get download makes of it (apt escapes ":" in names of files).
std::string file_of(const DebianPackage& package);

}  // namespace cellkeep::environments
