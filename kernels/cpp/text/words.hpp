// SPDX-License-Identifier: Apache-2.0
//
// Keywords and operators of C++ by what they can begin or join. Knows no names of cells.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace cellkeep::cpp {

template <std::size_t Size>
using Words = std::array<std::string_view, Size>;

inline constexpr Words<31> kDeclarationWords{
    "struct",       "class",        "union",         "enum",    "namespace",      "using",
    "typedef",      "template",     "extern",        "static",  "inline",         "constexpr",
    "consteval",    "constinit",    "concept",       "const",   "volatile",       "auto",
    "register",     "thread_local", "mutable",       "virtual", "explicit",       "friend",
    "typename",     "alignas",      "static_assert", "asm",     "_Static_assert", "__attribute__",
    "__extension__"};
inline constexpr Words<19> kBuiltinTypes{
    "void",
    "bool",
    "char",
    "wchar_t",
    "char8_t",
    "char16_t",
    "char32_t",
    "short",
    "int",
    "long",
    "signed",
    "unsigned",
    "float",
    "double",
    "auto",
    "decltype",
    "size_t",
    "__int128",
    "_Float16"};
inline constexpr Words<9> kOperatorWords{
    "and", "or", "xor", "not_eq", "and_eq", "or_eq", "xor_eq", "bitand", "bitor"};

/// Begin declarations in which nothing runs.
inline constexpr Words<6> kNamingWords{
    "using", "typedef", "template", "extern", "concept", "static_assert"};

/// Follow the name in a declaration of a variable or a function.
inline constexpr Words<7> kAfterDeclared{"=", ";", ",", "{", "(", "[", ":"};

template <std::size_t Size>
bool is_one_of(std::string_view word, const Words<Size>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Begin a statement, or an expression that is certainly not a declaration.
inline bool is_statement_word(std::string_view word) {
    constexpr Words<17> kWords{
        "if",
        "for",
        "while",
        "do",
        "switch",
        "try",
        "return",
        "goto",
        "throw",
        "case",
        "break",
        "else",
        "continue",
        "co_return",
        "co_await",
        "co_yield",
        "default"};
    return is_one_of(word, kWords) || word == "sizeof" || word == "not" || word == "compl" ||
           word == "catch" || word == "this" || word == "delete" || word == "new";
}

}  // namespace cellkeep::cpp
