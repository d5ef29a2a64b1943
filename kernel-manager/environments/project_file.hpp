// SPDX-License-Identifier: Apache-2.0
//
// What a project's pyproject.toml asks for (PEP 621): its dependencies, and those of the extras
// that are named. The project itself is no package of the index, and nothing of it runs. Pure
// functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

inline constexpr std::size_t kProjectFileBytesMax = 1UL << 20U;

/// A requirement in each line. kInvalidArgument says what is no project, no requirement or no extra
/// of it; also if the project's build alone knows them ("dynamic").
Result<std::string> requirements_of_project(
    std::string_view text, const std::vector<std::string>& extras);

}  // namespace cellkeep::environments
