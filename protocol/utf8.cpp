// SPDX-License-Identifier: Apache-2.0
#include "protocol/utf8.hpp"

namespace cellkeep::protocol {

namespace {

bool is_between(std::string_view text, std::size_t at, unsigned low, unsigned high) {
    return at < text.size() && static_cast<unsigned char>(text[at]) >= low &&
           static_cast<unsigned char>(text[at]) <= high;
}

int hexadecimal(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
    if (at >= text.size()) {
        return 0;
    }
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xC2 || first > 0xF4) {
        return 0;
    }
    if (first < 0xE0) {
        return is_between(text, at + 1, 0x80, 0xBF) ? 2 : 0;
    }
    // No overlong forms, no surrogates, nothing past U+10FFFF.
    const unsigned low = first == 0xE0 ? 0xA0 : (first == 0xF0 ? 0x90 : 0x80);
    const unsigned high = first == 0xED ? 0x9F : (first == 0xF4 ? 0x8F : 0xBF);
    if (!is_between(text, at + 1, low, high) || !is_between(text, at + 2, 0x80, 0xBF)) {
        return 0;
    }
    if (first < 0xF0) {
        return 3;
    }
    return is_between(text, at + 3, 0x80, 0xBF) ? 4 : 0;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
    const auto tail = [&](unsigned shift) {
        out += static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU));
    };
    if (code_point < 0x80) {
        out += static_cast<char>(code_point);
    } else if (code_point < 0x800) {
        out += static_cast<char>(0xC0U | (code_point >> 6U));
        tail(0);
    } else if (code_point < 0x10000) {
        out += static_cast<char>(0xE0U | (code_point >> 12U));
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xF0U | (code_point >> 18U));
        tail(12);
        tail(6);
        tail(0);
    }
}

EscapedUnit read_escaped_unit(std::string_view text, std::size_t at) {
    EscapedUnit read;
    if (text.size() < kEscapedUnitBytes || at > text.size() - kEscapedUnitBytes ||
        text[at] != '\\' || text[at + 1] != 'u') {
        return read;
    }
    for (std::size_t i = at + 2; i < at + kEscapedUnitBytes; ++i) {
        const int digit = hexadecimal(text[i]);
        if (digit < 0) {
            return read;
        }
        read.unit = read.unit << 4U | static_cast<std::uint32_t>(digit);
    }
    read.valid = true;
    return read;
}

}  // namespace cellkeep::protocol
