// SPDX-License-Identifier: Apache-2.0
//
// What an environment asks of Debian: packages by name, some of one version. Pure functions and
// values.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// Packages that are asked for.
inline constexpr std::size_t kDebianWantedMax = 200;
inline constexpr std::size_t kDebianNameBytesMax = 128;
inline constexpr std::size_t kDebianVersionBytesMax = 128;

struct DebianOrder {
    std::vector<std::string> packages;             // "graphviz" or "graphviz=2.42.2-7"; none: none
    std::string apt_get = {};                      // the program
    std::string dpkg_deb = {};                     // likewise
    std::vector<std::string> image_packages = {};  // what sessions have besides, and all it needs
};

/// A name as Debian Policy 5.6.1 has it, but none that ends with "-": apt-get takes that as an
/// order to remove.
bool is_debian_name(std::string_view text);
/// A version as Debian Policy 5.6.12 has it.
bool is_debian_version(std::string_view text);

/// Sorted, each once. kInvalidArgument names what is neither NAME nor NAME=VERSION, and a name with
/// two versions; kLimitExceeded beyond kDebianWantedMax.
Result<std::vector<std::string>> check_debian_packages(const std::vector<std::string>& packages);

}  // namespace cellkeep::environments
