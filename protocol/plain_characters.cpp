// SPDX-License-Identifier: Apache-2.0
#include "protocol/plain_characters.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace cellkeep::protocol {

namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHigh = 0x8080808080808080;

/// The high bit of each byte that is 0. A borrow can only add one above a byte that is found
/// rightly.
std::uint64_t find_zeros(std::uint64_t word) {
    return (word - kOnes) & ~word & kHigh;
}

/// The same of each byte that is a control character, a quote, a backslash or not ASCII.
std::uint64_t find_special(std::uint64_t word) {
    return ((word - kOnes * 0x20) & ~word & kHigh) | (word & kHigh) |
           find_zeros(word ^ (kOnes * '"')) | find_zeros(word ^ (kOnes * '\\'));
}

bool is_special(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x80 || c == '"' || c == '\\';
}

}  // namespace

std::size_t skip_plain_characters(std::string_view text, std::size_t at, std::size_t end) {
    while (end - at >= sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + at, sizeof word);
        const std::uint64_t found = find_special(word);
        if (found != 0) {
            if constexpr (std::endian::native == std::endian::little) {
                return at + static_cast<std::size_t>(std::countr_zero(found)) / 8;
            }
            break;
        }
        at += sizeof word;
    }
    while (at < end && !is_special(text[at])) {
        ++at;
    }
    return at;
}

}  // namespace cellkeep::protocol
