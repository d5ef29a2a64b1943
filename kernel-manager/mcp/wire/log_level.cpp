// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/wire/log_level.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace cellkeep::mcp {

namespace {

constexpr std::array<std::string_view, 8> kLogLevels = {
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

}  // namespace

std::string_view to_string(LogLevel level) {
    return kLogLevels.at(static_cast<std::size_t>(level));
}

std::optional<LogLevel> parse_log_level(std::string_view name) {
    const auto* found = std::find(kLogLevels.begin(), kLogLevels.end(), name);
    if (found == kLogLevels.end()) {
        return std::nullopt;
    }
    return static_cast<LogLevel>(found - kLogLevels.begin());
}

}  // namespace cellkeep::mcp
