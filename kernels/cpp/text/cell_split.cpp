// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/text/cell_split.hpp"

#include "kernels/cpp/text/idle_captures.hpp"
#include "kernels/cpp/text/main_function.hpp"
#include "kernels/cpp/text/token_walk.hpp"
#include "kernels/cpp/text/words.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace cellkeep::cpp {

namespace {

/// A recursive descent over the tokens that knows just enough of the grammar to find where each
/// declaration and each statement ends.
class Splitter final : private TokenWalk {
 public:
    Splitter(const std::vector<Token>& tokens, const MeaningOf& meaning_of)
        : TokenWalk(tokens), meaning_of_(meaning_of) {}

    std::vector<Piece> split() {
        while (at_ < tokens_.size()) {
            const std::size_t first = at_;
            Piece piece;
            if (tokens_[at_].kind == TokenKind::kDirective) {
                note_macro();
                ++at_;
                piece.kind = Piece::Kind::kDirective;
            } else if (is_declaration()) {
                piece.kind = Piece::Kind::kDeclaration;
                declaration(piece);
            } else {
                piece.kind = statement() ? Piece::Kind::kStatement : Piece::Kind::kValue;
            }
            piece.calls_main = piece.kind != Piece::Kind::kDirective &&
                               (piece.kind != Piece::Kind::kDeclaration || piece.initializes) &&
                               calls_main(*this, first, at_);
            piece.begin = tokens_[first].begin;
            piece.end = tokens_[at_ - 1].end;
            pieces_.push_back(std::move(piece));
        }
        return std::move(pieces_);
    }

 private:
    bool done() const { return at_ >= tokens_.size(); }
    bool is(std::string_view wanted) const { return text(at_) == wanted; }

    /// Past `::A::B<int>::c`; the name without template arguments goes to `name`, its last two
    /// words to `last` and `owner`.
    std::size_t past_name(
        std::size_t index,
        std::string& name,
        std::string_view& last,
        std::string_view& owner) const {
        if (text(index) == "::") {
            ++index;
        }
        for (;;) {
            if (!is_word(index)) {
                return index;
            }
            name += tokens_[index].text;
            owner = std::exchange(last, tokens_[index].text);
            ++index;
            if (text(index) == "<") {
                index = past_angles(index, knows_type(name));
            }
            if (text(index) != "::" || text(index + 1) == "*") {
                return index;
            }
            name += "::";
            ++index;
        }
    }

    /// From a `requires` after a template's head past its expression.
    std::size_t past_constraint(std::size_t index) const {
        do {
            ++index;  // `requires` or what joins two of them
            if (text(index) == "requires") {
                index = past_group(index + 1);
                index = text(index) == "{" ? past_group(index) : index;
            } else if (text(index) == "(") {
                index = past_group(index);
            } else {
                std::string name;
                std::string_view last;
                std::string_view owner;
                index = past_name(index, name, last, owner);
            }
        } while (text(index) == "&&" || text(index) == "||" || text(index) == "and" ||
                 text(index) == "or");
        return index;
    }

    bool knows_type(const std::string& name) const {
        return declared_types_.contains(name) ||
               (meaning_of_ && meaning_of_(name) == Meaning::kType);
    }
    bool knows_value(const std::string& name) const {
        return declared_values_.contains(name) ||
               (meaning_of_ && meaning_of_(name) == Meaning::kValue);
    }

    /// `T* p`, `T& r = …`, `T&& f(…)`, `T* A::f()`: the name before must be a type.
    bool declarator_follows(std::size_t index) const {
        index = past_pointers(index);
        return is_word(index) || text(index) == "(" || text(index) == "[";
    }

    /// `* p = …`, `& r{…}`, `* f(…) {`: what follows a name that this cell may have got from a
    /// header, and that is a type rather than a factor.
    bool whole_declarator_follows(std::size_t index) const {
        std::string name;
        std::string_view last;
        std::string_view owner;
        const std::size_t word = past_pointers(index);
        std::size_t next = past_name(word, name, last, owner);
        if (next == word || is_one_of(name, kOperatorWords)) {
            return false;
        }
        while (text(next) == "(" || text(next) == "[") {
            next = past_group(next);
        }
        return text(next) == "=" || text(next) == ";" || text(next) == "{" || text(next) == "," ||
               (is_word(next) && !is_one_of(text(next), kOperatorWords));
    }

    /// `(*f)(int) = …`, `(&r)[2] = …`, `(A::*m)();` after a type: not the value of `int(*p) + 1`.
    bool declarator_in_brackets(std::size_t index) const {
        if (text(index) != "(") {
            return false;
        }
        std::string name;
        std::string_view last;
        std::string_view owner;
        const std::size_t inner = past_name(index + 1, name, last, owner);
        const bool of_member = text(inner) == "::" && text(inner + 1) == "*";
        const std::string_view sign = text(index + 1);
        if (!of_member && sign != "*" && sign != "&" && sign != "&&") {
            return false;
        }
        const std::string_view after = text(past_group(index));
        return after == "(" || after == "[" || after == "=" || after == ";" || after == "{" ||
               after == ",";
    }

    bool is_declaration() const {
        const std::string_view first = text(at_);
        if (first == "[" && text(at_ + 1) == "[") {
            return true;
        }
        if (first == ";") {
            return false;
        }
        if (!is_word(at_) && first != "::") {
            return false;
        }
        if (first == "operator" || first == "new" || first == "delete") {
            return false;
        }
        if (is_one_of(first, kBuiltinTypes) && (text(at_ + 1) == "(" || text(at_ + 1) == "{")) {
            return first == "decltype" || declarator_in_brackets(at_ + 1);
        }
        if (is_one_of(first, kDeclarationWords) || is_one_of(first, kBuiltinTypes)) {
            return true;
        }
        return name_begins_declaration();
    }

    bool name_begins_declaration() const {
        std::string name;
        std::string_view last;
        std::string_view owner;
        const std::size_t next = past_name(at_, name, last, owner);
        const std::string_view token = text(next);
        if (token == "~" && name.ends_with("::")) {
            return true;  // A::~A() { … }
        }
        if (last == "operator") {
            return name != "operator";  // A::operator bool() const { … }
        }
        if (token == "(" && !owner.empty() && owner == last) {
            return true;  // A::A(int) { … }
        }
        if (is_word(next)) {
            if (token == "const" || token == "volatile") {
                return true;
            }
            return !is_one_of(token, kOperatorWords) && !is_statement_word(name);
        }
        if (token == "*" || token == "&" || token == "&&") {
            return knows_type(name) ? declarator_follows(next)
                                    : !knows_value(name) && whole_declarator_follows(next);
        }
        return knows_type(name) && declarator_in_brackets(next);
    }

    /// A declaration goes to its semicolon; a function, a namespace and a linkage block to their
    /// closing brace.
    void declaration(Piece& piece) {
        const std::size_t first = at_;
        while (is("template")) {
            ++at_;
            at_ = is("<") ? past_angles(at_, true) : at_;
            at_ = is("requires") ? past_constraint(at_) : at_;
        }
        while (is("[") || is("export") || is("inline")) {
            at_ = is("[") ? past_group(at_) : at_ + 1;
        }
        note_type();
        const bool scope = is("namespace") || (is("extern") && text(at_ + 1).starts_with("\""));
        const bool type = is("struct") || is("class") || is("union") || is("enum");
        const bool naming = is_one_of(text(first), kNamingWords);
        bool parameters = false;
        bool initializer = false;
        while (!done()) {
            const std::string_view token = text(at_);
            if (tokens_[at_].kind == TokenKind::kDirective) {
                ++at_;
            } else if (token == ";") {
                ++at_;
                piece.initializes = !scope && !type && !naming;
                break;
            } else if (token == "operator") {
                at_ += 2;  // operator=, operator(): its sign is no initializer
            } else if (token == "{") {
                if (text(first) == "enum") {
                    note_values(at_, past_group(at_));
                }
                at_ = past_group(at_);
                if (scope || (parameters && !initializer && !type && body_ends_here())) {
                    break;
                }
            } else if (token == "(" || token == "[") {
                parameters = parameters || token == "(";
                if (token == "[" && !initializer) {
                    note_values(at_, past_group(at_));  // auto [a, b]
                }
                at_ = past_group(at_);
            } else {
                initializer = initializer || token == "=";
                if (!type && !naming && (!initializer || text(at_ - 1) == ",") &&
                    is_one_of(text(at_ + 1), kAfterDeclared)) {
                    note_values(at_, at_ + 1);
                }
                ++at_;
            }
        }
        piece.defines_main = text(at_ - 1) == "}" && parameters && !initializer && !type &&
                             !scope && !naming && declares_main(*this, first, at_);
        const bool of_class = type && text(first) != "enum";
        if (!of_class && !scope && (piece.initializes || initializer || !parameters)) {
            piece.idle_captures = idle_captures(*this, first, at_);
        }
    }

    /// After a closing brace of a function: `A() : x{1}, y{2} {}` and `try {} catch {}` go on.
    bool body_ends_here() const {
        return !is(",") && !is("{") && !is("catch") && !is(";") && !is(")");
    }

    /// Remembers a type that the cell itself declares, for what follows in it.
    void note_type() {
        std::size_t index = at_;
        if (is("struct") || is("class") || is("union") || is("enum") || is("using") ||
            is("concept")) {
            ++index;
            if (text(index) == "class" || text(index) == "struct") {
                ++index;
            }
            while (text(index) == "[" || text(index) == "alignas") {
                index = text(index) == "[" ? past_group(index) : past_group(index + 1);
            }
            if (is_word(index)) {
                declared_types_.insert(std::string(text(index)));
            }
        } else if (is("typedef")) {
            std::string_view last;
            for (; index < tokens_.size() && text(index) != ";"; index = past_group(index)) {
                last = is_word(index) ? text(index) : last;
            }
            declared_types_.insert(std::string(last));
        }
    }

    /// Of what the cell itself declares, values: `a * b;` with one of them is no declaration.
    void note_values(std::size_t begin, std::size_t end) {
        for (std::size_t index = begin; index < end; ++index) {
            if (is_word(index)) {
                declared_values_.insert(std::string(text(index)));
            }
        }
    }

    /// A macro is taken for a value, whatever it is.
    void note_macro() {
        const std::vector<Token> words = tokenize(text(at_).substr(1));
        if (words.size() > 1 && words.front().text == "define") {
            declared_values_.insert(std::string(words[1].text));
        }
    }

    /// False if it is an expression at the end of the cell, without a semicolon.
    bool statement() {
        if (is("{")) {
            at_ = past_group(at_);
            return true;
        }
        if (is("if") || is("while") || is("for") || is("switch")) {
            return controlled_statement();
        }
        if (is("do")) {
            ++at_;
            sub_statement();
            return to_semicolon();
        }
        if (is("try")) {
            at_ = past_group(at_ + 1);
            while (is("catch")) {
                at_ = past_group(past_group(at_ + 1));
            }
            return true;
        }
        return to_semicolon();
    }

    bool controlled_statement() {
        const bool may_have_else = is("if");
        ++at_;
        if (is("constexpr") || is("consteval") || is("not") || is("!")) {
            ++at_;
        }
        if (is("(")) {
            at_ = past_group(at_);
        }
        sub_statement();
        if (may_have_else && is("else")) {
            ++at_;
            sub_statement();
        }
        return true;
    }

    void sub_statement() {
        if (!done()) {
            (void)statement();
        }
    }

    bool to_semicolon() {
        const bool value = !is_word(at_) || !is_statement_word(text(at_)) || is("this") ||
                           is("sizeof") || is("new") || is("not") || is("compl") || is("co_await");
        while (!done()) {
            if (tokens_[at_].kind == TokenKind::kDirective) {
                return true;
            }
            if (is(";")) {
                ++at_;
                return true;
            }
            at_ = past_group(at_);
        }
        return !value;
    }

    const MeaningOf& meaning_of_;
    std::set<std::string> declared_types_;
    std::set<std::string> declared_values_;
    std::vector<Piece> pieces_;
    std::size_t at_ = 0;
};

}  // namespace

std::vector<Piece> split_cell(const std::vector<Token>& tokens, const MeaningOf& meaning_of) {
    return Splitter(tokens, meaning_of).split();
}

}  // namespace cellkeep::cpp
