// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/tokens.hpp"

#include <algorithm>
#include <clang/Basic/LangOptions.h>
#include <clang/Lex/Lexer.h>
#include <string>

namespace cellkeep::cpp {

namespace {

TokenKind kind_of(const clang::Token& token, std::string_view text) {
    if (token.is(clang::tok::raw_identifier)) {
        return TokenKind::kWord;
    }
    if (token.is(clang::tok::unknown)) {
        return TokenKind::kBroken;
    }
    if (token.is(clang::tok::comment)) {
        return TokenKind::kBroken;  // only those that do not end come here
    }
    if (clang::tok::isLiteral(token.getKind())) {
        return TokenKind::kLiteral;
    }
    return text.empty() ? TokenKind::kBroken : TokenKind::kPunctuation;
}

bool is_unfinished_comment(std::string_view text) {
    return text.starts_with("/*") && (text.size() < 4 || !text.ends_with("*/"));
}

/// Up to the end of the line, past backslashes at line ends.
std::size_t end_of_directive(std::string_view code, std::size_t at) {
    for (; at < code.size(); ++at) {
        if (code[at] != '\n') {
            continue;
        }
        const bool carriage = at > 0 && code[at - 1] == '\r';
        const std::size_t before = at - (carriage ? 1 : 0);
        if (before == 0 || code[before - 1] != '\\') {
            return at;
        }
    }
    return code.size();
}

clang::LangOptions language() {
    clang::LangOptions options;
    options.CPlusPlus = true;
    options.CPlusPlus11 = true;
    options.CPlusPlus14 = true;
    options.CPlusPlus17 = true;
    options.CPlusPlus20 = true;
    options.Bool = true;
    options.LineComment = true;
    options.Digraphs = true;
    options.RawStringLiterals = true;
    return options;
}

}  // namespace

std::vector<Token> tokenize(std::string_view code) {
    // The lexer wants a zero behind the text.
    const std::string text(code);
    const clang::LangOptions options = language();
    clang::Lexer lexer(
        clang::SourceLocation(), options, text.data(), text.data(), text.data() + text.size());
    lexer.SetCommentRetentionState(true);
    std::vector<Token> tokens;
    std::size_t skip_until = 0;
    std::size_t last_end = 0;
    for (;;) {
        clang::Token token;
        lexer.LexFromRawLexer(token);
        if (token.is(clang::tok::eof)) {
            // The lexer passes over a comment that does not end without a word.
            const std::size_t rest = code.find_first_not_of(" \t\r\n", last_end);
            if (rest != std::string_view::npos && code.substr(rest).starts_with("/*")) {
                tokens.push_back({TokenKind::kBroken, code.substr(rest), rest, code.size()});
            }
            return tokens;
        }
        const auto end = static_cast<std::size_t>(lexer.getBufferLocation() - text.data());
        const std::size_t begin = end - token.getLength();
        const std::string_view spelled = code.substr(begin, token.getLength());
        last_end = std::max(end, skip_until);
        if (begin < skip_until) {
            continue;
        }
        if (token.is(clang::tok::comment) && !is_unfinished_comment(spelled)) {
            continue;
        }
        if (token.is(clang::tok::hash) && token.isAtStartOfLine()) {
            skip_until = end_of_directive(code, begin);
            last_end = skip_until;
            tokens.push_back(
                {TokenKind::kDirective, code.substr(begin, skip_until - begin), begin, skip_until});
            continue;
        }
        tokens.push_back({kind_of(token, spelled), spelled, begin, end});
    }
}

}  // namespace cellkeep::cpp
