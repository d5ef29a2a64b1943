// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/plain_path.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::egress {

namespace {

/// Blocks with characters whose compatibility form (NFKC, UAX #15) has a dot, slash, backslash,
/// percent sign or semicolon, such as U+2024, U+FF0E and U+FF0F.
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 8> kLookalikes = {{
    {0x37E, 0x37E},      // Greek question mark
    {0x2000, 0x206F},    // general punctuation, with what has no width
    {0x2100, 0x214F},    // letterlike symbols
    {0x2460, 0x24FF},    // enclosed alphanumerics
    {0x3300, 0x33FF},    // squared abbreviations
    {0xFE00, 0xFE6F},    // variation selectors, vertical and small forms
    {0xFEFF, 0xFFEF},    // byte order mark, fullwidth forms
    {0x1F100, 0x1F1FF},  // enclosed alphanumeric supplement
}};

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_control(unsigned char byte) {
    return byte < 0x20 || byte == 0x7F;
}

/// The path without percent codes. Nothing if a code is malformed, or stands for what may not be
/// encoded.
std::optional<std::string> decode_once(std::string_view path) {
    constexpr std::string_view kNeverEncoded = "./\\%;";
    std::string decoded;
    decoded.reserve(path.size());
    for (std::size_t i = 0; i < path.size(); ++i) {
        if (path[i] != '%') {
            decoded.push_back(path[i]);
            continue;
        }
        const int high = i + 1 < path.size() ? hex_digit(path[i + 1]) : -1;
        const int low = i + 2 < path.size() ? hex_digit(path[i + 2]) : -1;
        if (high < 0 || low < 0) {
            return std::nullopt;
        }
        const auto byte = static_cast<unsigned char>(high * 16 + low);
        const char c = static_cast<char>(byte);
        if (is_control(byte) || kNeverEncoded.find(c) != std::string_view::npos) {
            return std::nullopt;
        }
        decoded.push_back(c);
        i += 2;
    }
    return decoded;
}

/// Takes one character away from the front (RFC 3629, section 4). Nothing if it is not well-formed.
std::optional<std::uint32_t> take_character(std::string_view& text) {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t more = lead < 0x80 ? 0U : lead < 0xE0 ? 1U : lead < 0xF0 ? 2U : 3U;
    constexpr std::array<std::uint32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
    constexpr std::array<unsigned char, 4> kLeadBits = {0x7F, 0x1F, 0x0F, 0x07};
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || text.size() <= more) {
        return std::nullopt;
    }
    auto code = static_cast<std::uint32_t>(lead & kLeadBits[more]);
    for (std::size_t i = 1; i <= more; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xC0U) != 0x80U) {
            return std::nullopt;
        }
        code = (code << 6U) | (byte & 0x3FU);
    }
    if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return std::nullopt;
    }
    text.remove_prefix(more + 1);
    return code;
}

bool has_unambiguous_characters(std::string_view text) {
    while (!text.empty()) {
        const auto code = take_character(text);
        if (!code) {
            return false;
        }
        const bool c1_control = *code >= 0x80 && *code < 0xA0;
        const bool lookalike =
            std::any_of(kLookalikes.begin(), kLookalikes.end(), [code](const auto& range) {
                return *code >= range.first && *code <= range.second;
            });
        if (c1_control || lookalike) {
            return false;
        }
    }
    return true;
}

/// Whether some server takes the segment for "." or "..".
bool is_dot_segment(std::string_view segment) {
    std::string visible;
    std::copy_if(segment.begin(), segment.end(), std::back_inserter(visible), [](char c) {
        return c > ' ' && c < '\x7F';
    });
    return visible == "." || visible.starts_with("..");
}

}  // namespace

bool is_plain_path(std::string_view origin) {
    const std::string_view path = origin.substr(0, origin.find('?'));
    if (path.find_first_of(";\\") != std::string_view::npos) {
        return false;
    }
    const auto decoded = decode_once(path);
    if (!decoded || !has_unambiguous_characters(*decoded)) {
        return false;
    }
    std::string_view rest = *decoded;
    while (!rest.empty()) {
        const std::size_t slash = rest.find('/', 1);
        const std::string_view segment =
            rest.substr(1, slash == std::string_view::npos ? slash : slash - 1);
        const bool last = slash == std::string_view::npos;
        if (is_dot_segment(segment) || (segment.empty() && !last)) {
            return false;
        }
        rest = last ? std::string_view() : rest.substr(slash);
    }
    return true;
}

}  // namespace cellkeep::egress
