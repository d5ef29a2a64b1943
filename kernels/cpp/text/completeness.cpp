// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/text/completeness.hpp"

#include "kernels/cpp/text/tokens.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace cellkeep::cpp {

namespace {

constexpr std::size_t kIndentWidth = 4;

/// After these a line cannot end. `>` may close a template head, `&` and `*` may follow a type;
/// there the next line is wanted all the same.
constexpr std::array<std::string_view, 33> kWantMore{
    "+",  "-",  "*",  "/",  "%",  "=",  "<",  ">",  "&",  "|",  "^",
    "!",  "~",  ",",  ".",  "->", "::", "&&", "||", "==", "!=", "<=",
    ">=", "<<", ">>", "+=", "-=", "*=", "/=", "%=", "?",  ":",  "\\"};
constexpr std::array<std::string_view, 4> kHeads{"else", "do", "try", "return"};

char closing_of(std::string_view opening) {
    return opening == "(" ? ')' : opening == "[" ? ']' : '}';
}

/// `if (…)`, `for (…)`, `while (…)`, `else` and `template <…>` at the end wait for what they rule.
/// A `while` that closes a `do` is taken for a new one only if there is no `}` before it.
bool ends_in_head(const std::vector<Token>& tokens) {
    const std::string_view last = tokens.back().text;
    if (std::find(kHeads.begin(), kHeads.end() - 1, last) != kHeads.end() - 1) {
        return true;
    }
    if (last != ")") {
        return false;
    }
    std::size_t depth = 0;
    for (std::size_t index = tokens.size(); index-- > 0;) {
        depth += tokens[index].text == ")" ? 1U : 0U;
        if (tokens[index].text == "(" && --depth == 0) {
            if (index == 0) {
                return false;
            }
            const std::string_view word = tokens[index - 1].text;
            const bool closes_do = word == "while" && index > 1 && tokens[index - 2].text == "}";
            return (word == "if" || word == "for" || word == "switch" || word == "constexpr" ||
                    word == "while") &&
                   !closes_do;
        }
    }
    return false;
}

/// Of a directive: "if", "define" and what follows.
std::string_view directive_name(const Token& token) {
    const std::size_t word = token.text.find_first_not_of("# \t");
    return word == std::string_view::npos ? std::string_view() : token.text.substr(word);
}

/// A comment or a raw string without its end; a string cannot go over the line's end.
bool goes_over_lines(const Token& token) {
    return token.kind == TokenKind::kBroken &&
           (token.text.starts_with("/*") || token.text.find("R\"") != std::string_view::npos);
}

int conditionals_open(const std::vector<Token>& tokens) {
    int open = 0;
    for (const Token& token : tokens) {
        if (token.kind != TokenKind::kDirective) {
            continue;
        }
        const std::string_view name = directive_name(token);
        open += name.starts_with("if") ? 1 : 0;
        open -= name.starts_with("endif") ? 1 : 0;
    }
    return open;
}

}  // namespace

Completeness completeness_of(std::string_view code) {
    const std::vector<Token> tokens = tokenize(code);
    if (tokens.empty()) {
        return {"complete", ""};
    }
    std::string open;
    for (const Token& token : tokens) {
        if (token.kind == TokenKind::kBroken) {
            return {goes_over_lines(token) ? "incomplete" : "invalid", ""};
        }
        if (token.kind != TokenKind::kPunctuation) {
            continue;
        }
        if (token.text == "(" || token.text == "[" || token.text == "{") {
            open.push_back(closing_of(token.text));
        } else if (token.text == ")" || token.text == "]" || token.text == "}") {
            if (open.empty() || open.back() != token.text.front()) {
                return {"invalid", ""};
            }
            open.pop_back();
        }
    }
    const auto braces = static_cast<std::size_t>(std::count(open.begin(), open.end(), '}'));
    const std::string indent(kIndentWidth * braces, ' ');
    const Token& last = tokens.back();
    const bool hanging =
        last.kind == TokenKind::kPunctuation &&
        std::find(kWantMore.begin(), kWantMore.end(), last.text) != kWantMore.end();
    if (!open.empty() || conditionals_open(tokens) > 0 || hanging) {
        return {"incomplete", indent};
    }
    if (last.kind == TokenKind::kDirective && last.text.ends_with('\\')) {
        return {"incomplete", ""};
    }
    if (ends_in_head(tokens)) {
        return {"incomplete", std::string(kIndentWidth, ' ')};
    }
    return {"complete", ""};
}

std::optional<Flaw> flaw_of(std::string_view code) {
    const std::vector<Token> tokens = tokenize(code);
    for (const Token& token : tokens) {
        if (goes_over_lines(token)) {
            const bool comment = token.text.starts_with("/*");
            return Flaw{
                token.begin,
                comment ? "nothing ends this comment" : "nothing ends this raw string"};
        }
    }
    std::vector<Token> open;
    for (const Token& token : tokens) {
        if (token.kind == TokenKind::kDirective && directive_name(token).starts_with("if")) {
            return std::nullopt;
        }
        if (token.kind != TokenKind::kPunctuation) {
            continue;
        }
        if (token.text == "(" || token.text == "[" || token.text == "{") {
            open.push_back(token);
        } else if ((token.text == ")" || token.text == "]" || token.text == "}") && !open.empty()) {
            if (closing_of(open.back().text) != token.text.front()) {
                return Flaw{
                    token.begin,
                    "this '" + std::string(token.text) + "' does not close a '" +
                        std::string(open.back().text) + "'"};
            }
            open.pop_back();
        }
    }
    if (open.empty()) {
        return std::nullopt;
    }
    return Flaw{open.front().begin, "nothing closes this '" + std::string(open.front().text) + "'"};
}

}  // namespace cellkeep::cpp
