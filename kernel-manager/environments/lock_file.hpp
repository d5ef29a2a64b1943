// SPDX-License-Identifier: Apache-2.0
//
// A lock names every package with its version and the hashes of its files. Two forms are read:
// pylock.toml (PEP 751), and requirements with "==" and "--hash" (pip-compile, uv pip compile). The
// addresses in a pylock.toml are not used: files come from the index, and have to have the hashes.
// Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace cellkeep::environments {

inline constexpr std::size_t kLockFileBytesMax = 8UL << 20U;
/// Of the lines that are made of it.
inline constexpr std::size_t kLockLinesBytesMax = 1UL << 20U;

/// A line for each package, as requirements have it. kInvalidArgument names the package or the line
/// that is not locked, or that is no wheel of an index; kLimitExceeded beyond the bounds.
Result<std::string> requirements_of_lock(std::string_view text);

}  // namespace cellkeep::environments
