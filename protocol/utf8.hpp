// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 (Unicode 15, table 3-7) and the \u escapes of JSON strings (RFC 8259, section 7), one
// character at a time. Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::protocol {

/// Bytes of the well-formed character that begins at text[at]; 0 if none does.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Appends a character. Precondition: a code point that is no surrogate.
void append_utf8(std::string& out, std::uint32_t code_point);

/// "\uXXXX"
inline constexpr std::size_t kEscapedUnitBytes = 6;
struct EscapedUnit {
    bool valid = false;
    std::uint32_t unit = 0;  // of UTF-16
};
/// The escape that begins at text[at], which may be past the end.
EscapedUnit read_escaped_unit(std::string_view text, std::size_t at);

constexpr bool is_high_surrogate(std::uint32_t unit) {
    return unit >= 0xD800 && unit < 0xDC00;
}
constexpr bool is_low_surrogate(std::uint32_t unit) {
    return unit >= 0xDC00 && unit < 0xE000;
}

}  // namespace cellkeep::protocol
