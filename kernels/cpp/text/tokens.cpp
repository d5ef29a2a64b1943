// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/text/tokens.hpp"

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

/// Of a directive's last line, which `at` is in: past backslashes at line ends.
std::size_t end_of_line(std::string_view code, std::size_t at) {
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
    std::size_t last_end = 0;
    bool in_directive = false;
    bool after_comment = false;  // and nothing else in this line
    for (;;) {
        clang::Token token;
        lexer.LexFromRawLexer(token);
        const bool at_end = token.is(clang::tok::eof);
        // The lexer passes over a comment that does not end without a word.
        const std::size_t rest =
            at_end ? code.find_first_not_of(" \t\r\n", last_end) : std::string_view::npos;
        const bool broken = rest != std::string_view::npos && code.substr(rest).starts_with("/*");
        if (in_directive && (at_end || token.isAtStartOfLine())) {
            in_directive = false;
            Token& directive = tokens.back();
            directive.end = broken ? last_end : end_of_line(code, last_end);
            directive.text = code.substr(directive.begin, directive.end - directive.begin);
        }
        if (broken) {
            tokens.push_back({TokenKind::kBroken, code.substr(rest), rest, code.size()});
        }
        if (at_end) {
            return tokens;
        }
        const auto end = static_cast<std::size_t>(lexer.getBufferLocation() - text.data());
        const std::size_t begin = end - token.getLength();
        const std::string_view spelled = code.substr(begin, token.getLength());
        last_end = end;
        const bool begins_line = token.isAtStartOfLine() || after_comment;
        const bool comment = token.is(clang::tok::comment) && !is_unfinished_comment(spelled);
        after_comment = comment && begins_line;
        if (in_directive || comment) {
            continue;
        }
        in_directive = token.is(clang::tok::hash) && begins_line;
        const TokenKind kind = in_directive ? TokenKind::kDirective : kind_of(token, spelled);
        tokens.push_back({kind, spelled, begin, end});
    }
}

}  // namespace cellkeep::cpp
