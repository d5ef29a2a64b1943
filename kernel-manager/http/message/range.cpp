// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/range.hpp"

#include "kernel-manager/http/message/headers.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace cellkeep::http {

namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || error != std::errc() || stop != end) {
        return std::nullopt;
    }
    return value;
}

}  // namespace

RangeAnswer select_range(std::string_view header, std::uint64_t file_bytes) {
    const RangeAnswer whole{RangeOutcome::kWhole, {0, file_bytes}};
    const RangeAnswer refused{RangeOutcome::kNotSatisfiable, {}};
    const std::size_t equals = header.find('=');
    if (equals == std::string_view::npos ||
        !equals_ignoring_case(header.substr(0, equals), "bytes")) {
        return whole;
    }
    const std::string_view set = header.substr(equals + 1);
    const std::size_t dash = set.find('-');
    if (dash == std::string_view::npos || set.find(',') != std::string_view::npos) {
        return whole;
    }
    const auto first = parse_number(set.substr(0, dash));
    const auto last = parse_number(set.substr(dash + 1));
    if (dash == 0) {  // "-N": the last N bytes
        if (!last) {
            return whole;
        }
        const std::uint64_t length = std::min(*last, file_bytes);
        return length == 0 ? refused
                           : RangeAnswer{RangeOutcome::kPart, {file_bytes - length, length}};
    }
    const bool open_end = dash + 1 == set.size();
    if (!first || (!last && !open_end) || (last && *last < *first)) {
        return whole;
    }
    if (*first >= file_bytes) {
        return refused;
    }
    const std::uint64_t end = open_end ? file_bytes : std::min(*last, file_bytes - 1) + 1;
    return RangeAnswer{RangeOutcome::kPart, {*first, end - *first}};
}

}  // namespace cellkeep::http
