// SPDX-License-Identifier: Apache-2.0
//
// What a client may name as a package: a name, extras and versions as PEP 508 has them, and nothing
// else. Markers, addresses, paths and options have no place in it. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace cellkeep::environments {

/// Packages of one order, and the bytes of one: its name, extras and versions.
inline constexpr std::size_t kOrderedPackagesMax = 50;
inline constexpr std::size_t kOrderedPackageBytesMax = 128;

/// "rich", "humanize==4.9", "pandas[excel]>=2,<3", with or without spaces around "," and the
/// comparisons. kInvalidArgument says what is wrong.
Status check_package(std::string_view text);

}  // namespace cellkeep::environments
