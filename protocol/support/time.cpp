// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/time.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace cellkeep {

namespace {

/// value with at least width digits.
void append_number(std::string& out, std::int64_t value, std::size_t width) {
    const std::string digits = std::to_string(value);
    out.append(width - std::min(width, digits.size()), '0').append(digits);
}

}  // namespace

// By hand, because every message has a date: strftime(3) takes ten times as long.
std::string to_iso8601(std::chrono::system_clock::time_point time) {
    const auto instant = std::chrono::floor<std::chrono::microseconds>(time);
    const auto day = std::chrono::floor<std::chrono::days>(instant);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{instant - day};
    std::string text;
    text.reserve(sizeof("2026-01-01T00:00:00.000000Z"));
    append_number(text, static_cast<int>(date.year()), 4);
    text += '-';
    append_number(text, static_cast<unsigned>(date.month()), 2);
    text += '-';
    append_number(text, static_cast<unsigned>(date.day()), 2);
    text += 'T';
    append_number(text, clock.hours().count(), 2);
    text += ':';
    append_number(text, clock.minutes().count(), 2);
    text += ':';
    append_number(text, clock.seconds().count(), 2);
    text += '.';
    append_number(text, clock.subseconds().count(), 6);
    text += 'Z';
    return text;
}

}  // namespace cellkeep
