// SPDX-License-Identifier: Apache-2.0
//
// How deep a text of TOML is nested, looked at before toml++ parses it: version 3.3 bounds arrays
// and inline tables in each other (256), but not the parts of a dotted key, and destroys its tables
// recursively. A key of 100,000 parts would end the process. A pure function.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string_view>

namespace cellkeep {

/// Of a dotted key, also of a table's header.
inline constexpr std::size_t kTomlKeyPartsMax = 32;
/// Arrays and inline tables in each other. Each may have a key of so many parts.
inline constexpr std::size_t kTomlNestedMax = 32;

/// kLimitExceeded with the line. What is no TOML is left to the parser, which stops where the
/// first error is.
Status check_toml_depth(std::string_view text);

}  // namespace cellkeep
