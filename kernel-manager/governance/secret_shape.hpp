// SPDX-License-Identifier: Apache-2.0
//
// What keys, tokens and passwords look like, and the names that people give them. Pure functions
// over short pieces of text; redaction.hpp finds the pieces.
#pragma once

#include <cstddef>
#include <string_view>

namespace cellkeep::session {

constexpr char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_letter(char c) {
    return to_lower(c) >= 'a' && to_lower(c) <= 'z';
}
constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
/// Of a name.
constexpr bool is_word_char(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}
/// Of a token: token68 of RFC 9110, section 11.2.
constexpr bool is_token_char(char c) {
    return is_word_char(c) || c == '-' || c == '.' || c == '~' || c == '+' || c == '/' || c == '=';
}

struct ShapeMatch {
    std::size_t length = 0;  // 0: none
    std::string_view name;
};
/// The key or token with a well-known shape that text begins with. Text must begin where a word
/// does.
ShapeMatch match_shape(std::string_view text);

enum class NameKind {
    kOrdinary,
    kSecret,    // API_KEY, auth_token, clientSecret
    kPassword,  // DB_PASSWORD, passwd
};
NameKind kind_of_name(std::string_view name);

/// Whether the value is so long and irregular that no person wrote it as text.
bool looks_random(std::string_view value);
/// The same, with more evidence, where code is as likely as a value.
bool looks_very_random(std::string_view value);
/// A word with a digit or a sign in it that is no placeholder.
bool looks_like_password(std::string_view value);
/// "password", "<token>", "xxxx", "${NAME}", "%s" …: what examples have in a secret's place.
bool is_placeholder(std::string_view value);

}  // namespace cellkeep::session
