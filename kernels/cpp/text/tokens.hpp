// SPDX-License-Identifier: Apache-2.0
//
// A cell as C++ tokens, before preprocessing. clang's own lexer makes them, so that raw strings,
// digit separators and line continuations are read as the compiler reads them.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace cellkeep::cpp {

enum class TokenKind {
    kWord,         // identifiers and keywords
    kLiteral,      // numbers, strings, characters
    kPunctuation,  // also the alternative spellings of operators that are not words
    kDirective,    // a whole preprocessor line, with its continuations
    kBroken,       // a literal or a comment that does not end
};

struct Token {
    TokenKind kind = TokenKind::kBroken;
    std::string_view text;  // points into the cell
    std::size_t begin = 0;  // bytes from the cell's beginning
    std::size_t end = 0;
};

/// Comments are left out. `code` must outlive the tokens.
std::vector<Token> tokenize(std::string_view code);

}  // namespace cellkeep::cpp
