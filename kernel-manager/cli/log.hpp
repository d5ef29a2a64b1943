// SPDX-License-Identifier: Apache-2.0
//
// The server's log on stderr: one event a line, as JSON or as text. What looks like a secret is
// redacted (governance/redaction.hpp). Callers must still never pass a token.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace cellkeep::cli {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kJson, kText };

/// "debug", "info", "warning", "error", "off".
Result<LogLevel> parse_log_level(std::string_view text);
/// "json", "text".
Result<LogFormat> parse_log_format(std::string_view text);

/// Before the first event; without it, events of level kInfo and above are written as JSON.
void configure_log(LogLevel level, LogFormat format);

/// `event` is a stable name ("request", "session_created"); fields an object of plain values.
void log_event(
    LogLevel level, std::string_view event, nlohmann::json fields = nlohmann::json::object());

/// The line's variable part, for tests: {"event":…,…} or "event key=value".
std::string format_event(std::string_view event, nlohmann::json fields, LogFormat format);

}  // namespace cellkeep::cli
