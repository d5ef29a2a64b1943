// SPDX-License-Identifier: Apache-2.0
//
// What conda's environment.yml asks for, as requirements of PyPI's packages. No channel is asked:
// packages that are known to be the same project at PyPI are taken from there (conda_names.hpp),
// and all others are refused by name. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::environments {

inline constexpr std::size_t kCondaFileBytesMax = 256UL << 10U;
/// One error names so many dependencies, and counts the others.
inline constexpr std::size_t kRefusedNamedMax = 20;

struct CondaFile {
    std::string requirements;                          // one in each line
    std::optional<std::string> python = std::nullopt;  // "3.12"
};

/// kInvalidArgument names the line that is no such file, or all dependencies that cannot be taken;
/// kLimitExceeded beyond the bound.
Result<CondaFile> read_conda_file(std::string_view text);

}  // namespace cellkeep::environments
