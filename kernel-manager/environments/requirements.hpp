// SPDX-License-Identifier: Apache-2.0
//
// What a requirements file may ask for: packages by name, each with extras, versions, a marker and
// hashes. Everything that would lead past the index that was named is refused: options, addresses,
// files, folders, repositories, variables. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

inline constexpr std::size_t kRequirementsBytesMax = 256UL << 10U;
inline constexpr std::size_t kRequirementsMax = 1000;
inline constexpr std::size_t kIndexBytesMax = 2048;

/// Each as one line without a comment, in the order of the file. kInvalidArgument names the line;
/// kLimitExceeded beyond the bounds.
Result<std::vector<std::string>> parse_requirements(
    std::string_view text, std::size_t bytes_max = kRequirementsBytesMax);
/// One of another file's, which may be any text. kInvalidArgument if it is not one in one line.
Result<std::string> parse_requirement(std::string_view text);

/// What packages are taken from unless an index is named.
inline constexpr std::string_view kDefaultIndex = "PyPI";

/// An index is an http or https address of at most kIndexBytesMax, or "" for the default one.
/// kInvalidArgument else.
Status check_index(std::string_view url);
/// The address as it may be shown: without a user's name and password.
std::string shown_index(std::string_view url);

}  // namespace cellkeep::environments
