// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/log.hpp"

#include "kernel-manager/governance/redaction.hpp"
#include "protocol/message.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace cellkeep::cli {

namespace {

/// Any thread: the store's own says when it is in trouble.
struct Log {
    std::shared_ptr<spdlog::logger> logger;
    LogFormat format = LogFormat::kJson;

    Log() : logger(spdlog::stderr_logger_mt("cellkeep")) { use(LogLevel::kInfo, format); }

    void use(LogLevel level, LogFormat new_format) {
        format = new_format;
        logger->set_level(to_spdlog(level));
        logger->set_pattern(
            format == LogFormat::kJson ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v"
                                       : "%Y-%m-%dT%H:%M:%S.%eZ %-7l %v",
            spdlog::pattern_time_type::utc);
    }

    static spdlog::level::level_enum to_spdlog(LogLevel level) {
        switch (level) {
            case LogLevel::kDebug:
                return spdlog::level::debug;
            case LogLevel::kInfo:
                return spdlog::level::info;
            case LogLevel::kWarning:
                return spdlog::level::warn;
            case LogLevel::kError:
                return spdlog::level::err;
            case LogLevel::kOff:
                return spdlog::level::off;
        }
        return spdlog::level::info;
    }
};

Log& instance() {
    static Log log;
    return log;
}

/// Code points beyond ASCII that a terminal takes for commands, or that change how the text around
/// them is shown: C1 controls, line and paragraph separators, and marks of writing direction.
bool is_unshowable(char32_t point) {
    return (point >= 0x80 && point <= 0x9F) || point == 0x200E || point == 0x200F ||
           (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) ||
           point == 0xFEFF;
}

/// JSON text that shows everything it holds; it means the same. nlohmann/json escapes only C0.
std::string dump_shown(const nlohmann::json& value) {
    std::string text = protocol::dump_json(value);
    if (std::all_of(text.begin(), text.end(), [](char c) {
            return static_cast<unsigned char>(c) < 0x80;
        })) {
        return text;
    }
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
        const auto first = static_cast<unsigned char>(text[at]);
        const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        const std::string_view piece = std::string_view(text).substr(at, length);
        char32_t point = length == 1 ? first : first & (0xFFU >> (length + 1));
        for (const char more : piece.substr(1)) {
            point = (point << 6U) | (static_cast<unsigned char>(more) & 0x3FU);
        }
        shown += is_unshowable(point) ? fmt::format("\\u{:04x}", static_cast<unsigned>(point))
                                      : std::string(piece);
        at += length;
    }
    return shown;
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
    for (const auto& [name, level] : {
             std::pair<std::string_view, LogLevel>{"debug", LogLevel::kDebug},
             {"info", LogLevel::kInfo},
             {"warning", LogLevel::kWarning},
             {"error", LogLevel::kError},
             {"off", LogLevel::kOff},
         }) {
        if (text == name) {
            return level;
        }
    }
    return Error(
        ErrorCode::kInvalidArgument,
        "log level \"" + std::string(text) + "\" is not debug, info, warning, error or off");
}

Result<LogFormat> parse_log_format(std::string_view text) {
    if (text == "json") {
        return LogFormat::kJson;
    }
    if (text == "text") {
        return LogFormat::kText;
    }
    return Error(
        ErrorCode::kInvalidArgument,
        "log format \"" + std::string(text) + "\" is not json or text");
}

void configure_log(LogLevel level, LogFormat format) {
    instance().use(level, format);
}

std::string format_event(std::string_view event, nlohmann::json given, LogFormat format) {
    // What guests, clients and libraries say ends up here too.
    const nlohmann::json fields = session::redact_json(std::move(given));
    if (format == LogFormat::kJson) {
        std::string line = "\"event\":" + protocol::dump_json(std::string(event));
        const std::string rest = dump_shown(fields);
        return line + (rest.size() > 2 ? "," + rest.substr(1) : "}");
    }
    std::string line(event);
    for (const auto& [name, value] : fields.items()) {
        line += " " + name + "=" + dump_shown(value);
    }
    return line;
}

void log_event(LogLevel level, std::string_view event, nlohmann::json fields) {
    Log& log = instance();
    const auto spdlog_level = Log::to_spdlog(level);
    if (log.logger->should_log(spdlog_level)) {
        log.logger->log(
            spdlog_level,
            spdlog::string_view_t(format_event(event, std::move(fields), log.format)));
    }
}

}  // namespace cellkeep::cli
