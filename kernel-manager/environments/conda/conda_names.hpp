// SPDX-License-Identifier: Apache-2.0
//
// Which packages of conda are the same project at PyPI, and how PyPI calls it. A name of conda's
// that is not here may be a stranger's at PyPI, or become one. A value.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace cellkeep::environments {

/// By conda's name, in any writing that PEP 503 takes for the same. Nothing: not known.
std::optional<std::string_view> pypi_name(std::string_view conda_name);

/// For the tests: names that are the same in both, and pairs of those that are not. Normalised.
std::span<const std::string_view> same_names();
using NamePair = std::pair<std::string_view, std::string_view>;  // conda's, PyPI's
std::span<const NamePair> other_names();

}  // namespace cellkeep::environments
