// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/text/cursor.hpp"

#include <algorithm>

namespace cellkeep::cpp {

namespace {

bool continues_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

bool is_word(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || static_cast<unsigned char>(byte) >= 0x80U;
}

}  // namespace

std::size_t byte_of_point(std::string_view code, std::size_t point) {
    std::size_t byte = 0;
    for (; byte < code.size(); ++byte) {
        if (!continues_character(code[byte]) && point-- == 0) {
            return byte;
        }
    }
    return byte;
}

std::size_t point_of_byte(std::string_view code, std::size_t byte) {
    const std::string_view before = code.substr(0, byte);
    return before.size() - static_cast<std::size_t>(
                               std::count_if(before.begin(), before.end(), &continues_character));
}

std::string expression_at(std::string_view code, std::size_t byte) {
    std::size_t end = std::min(byte, code.size());
    while (end < code.size() && is_word(code[end])) {
        ++end;
    }
    std::size_t begin = end;
    for (;;) {
        while (begin > 0 && is_word(code[begin - 1])) {
            --begin;
        }
        const std::string_view before = code.substr(0, begin);
        if (before.ends_with("::") || before.ends_with("->")) {
            begin -= 2;
        } else if (before.ends_with('.')) {
            begin -= 1;
        } else {
            break;
        }
    }
    return std::string(code.substr(begin, end - begin));
}

}  // namespace cellkeep::cpp
