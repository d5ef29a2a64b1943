// SPDX-License-Identifier: Apache-2.0
//
// What the log says of an upgrade. Pure.
#pragma once

#include "kernel-manager/cli/upgrade/upgrade.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// Of what is in the way, the log names so many, and how many there are.
inline constexpr std::size_t kUpgradeNamedMax = 20;

/// The fields of the event "upgrade".
nlohmann::json describe_news(Upgrade::News news, const std::vector<std::string>& told);

}  // namespace cellkeep::cli
