// SPDX-License-Identifier: Apache-2.0
//
// How much a client wants to hear of what the server does: the levels of RFC 5424, lowest first.
// Pure.
#pragma once

#include <optional>
#include <string_view>

namespace cellkeep::mcp {

enum class LogLevel { kDebug, kInfo, kNotice, kWarning, kError, kCritical, kAlert, kEmergency };

std::string_view to_string(LogLevel level);
/// Nothing if there is no level of that name.
std::optional<LogLevel> parse_log_level(std::string_view name);

}  // namespace cellkeep::mcp
