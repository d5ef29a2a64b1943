// SPDX-License-Identifier: Apache-2.0
#include "protocol/mcp/header_value.hpp"

#include "protocol/base64.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>

namespace cellkeep::protocol {

namespace {

constexpr std::string_view kEncodedBegin = "=?base64?";
constexpr std::string_view kEncodedEnd = "?=";

}  // namespace

std::string encode_mcp_header(std::string_view value) {
    const bool is_plain =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
    const bool looks_encoded = value.starts_with(kEncodedBegin) && value.ends_with(kEncodedEnd);
    if (is_plain && !looks_encoded && trim(value) == value) {
        return std::string(value);
    }
    return std::string(kEncodedBegin) + encode_base64(value) + std::string(kEncodedEnd);
}

std::optional<std::string> decode_mcp_header(std::string_view value) {
    value = trim(value);
    if (value.size() < kEncodedBegin.size() + kEncodedEnd.size() ||
        !value.starts_with(kEncodedBegin) || !value.ends_with(kEncodedEnd)) {
        return std::string(value);
    }
    value.remove_prefix(kEncodedBegin.size());
    value.remove_suffix(kEncodedEnd.size());
    return decode_base64(value);
}

}  // namespace cellkeep::protocol
