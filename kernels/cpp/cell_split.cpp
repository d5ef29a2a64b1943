// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/cell_split.hpp"

#include "kernels/cpp/words.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace cellkeep::cpp {

namespace {

/// A recursive descent over the tokens that knows just enough of the grammar to find where each
/// declaration and each statement ends.
class Splitter {
 public:
    Splitter(const std::vector<Token>& tokens, const IsType& is_type)
        : tokens_(tokens), is_type_(is_type) {}

    std::vector<Piece> split() {
        while (at_ < tokens_.size()) {
            const std::size_t first = at_;
            Piece piece;
            if (tokens_[at_].kind == TokenKind::kDirective) {
                ++at_;
                piece.kind = Piece::Kind::kDirective;
            } else if (is_declaration()) {
                piece.kind = Piece::Kind::kDeclaration;
                declaration(piece);
            } else {
                piece.kind = statement() ? Piece::Kind::kStatement : Piece::Kind::kValue;
            }
            piece.begin = tokens_[first].begin;
            piece.end = tokens_[at_ - 1].end;
            pieces_.push_back(std::move(piece));
        }
        return std::move(pieces_);
    }

 private:
    bool done() const { return at_ >= tokens_.size(); }
    std::string_view text(std::size_t index) const {
        return index < tokens_.size() ? tokens_[index].text : std::string_view();
    }
    bool is(std::string_view wanted) const { return text(at_) == wanted; }
    bool is_word(std::size_t index) const {
        return index < tokens_.size() && tokens_[index].kind == TokenKind::kWord;
    }

    /// From an opening bracket past its closing one; past one token otherwise.
    std::size_t past_group(std::size_t index) const {
        std::size_t depth = 0;
        for (; index < tokens_.size(); ++index) {
            const std::string_view token = tokens_[index].text;
            if (tokens_[index].kind == TokenKind::kPunctuation) {
                if (token == "(" || token == "[" || token == "{") {
                    ++depth;
                } else if ((token == ")" || token == "]" || token == "}") && depth > 0) {
                    --depth;
                }
            }
            if (depth == 0) {
                return index + 1;
            }
        }
        return index;
    }

    /// From a `<` past its `>`; `index` itself if it does not look like template arguments.
    std::size_t past_angles(std::size_t index) const {
        std::size_t depth = 0;
        for (std::size_t next = index; next < tokens_.size();) {
            const std::string_view token = tokens_[next].text;
            // `a < b && c > d` is a comparison; `tuple<int&&>` is the only `&&` of a type.
            const bool rvalue = token == "&&" && (text(next + 1) == ">" || text(next + 1) == ",");
            if (token == ";" || token == "{" || token == "}" || token == "||" ||
                (token == "&&" && !rvalue) || is_one_of(token, kOperatorWords)) {
                return index;
            }
            if (token == "(" || token == "[") {
                next = past_group(next);
                continue;
            }
            depth += token == "<" ? 1U : 0U;
            if (token == ">" || token == ">>" || token == ">>=") {
                const std::size_t closed = token == ">" ? 1 : 2;
                if (closed >= depth) {
                    return next + 1;
                }
                depth -= closed;
            }
            ++next;
        }
        return index;
    }

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
                index = past_angles(index);
            }
            if (text(index) != "::" || text(index + 1) == "*") {
                return index;
            }
            name += "::";
            ++index;
        }
    }

    bool knows_type(const std::string& name) const {
        return declared_types_.contains(name) || (is_type_ && is_type_(name));
    }

    /// `T* p`, `T& r = …`, `T&& f(…)`, `T* A::f()`: the name before must be a type.
    bool declarator_follows(std::size_t index) const {
        while (text(index) == "*" || text(index) == "&" || text(index) == "&&" ||
               text(index) == "const" || text(index) == "volatile") {
            ++index;
        }
        return is_word(index) || text(index) == "(" || text(index) == "[";
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
            return first == "decltype";
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
            return knows_type(name) && declarator_follows(next);
        }
        return false;
    }

    /// A declaration goes to its semicolon; a function, a namespace and a linkage block to their
    /// closing brace.
    void declaration(Piece& piece) {
        const std::size_t first = at_;
        while (is("template")) {
            ++at_;
            at_ = is("<") ? past_angles(at_) : at_;
        }
        while (is("[") || is("export") || is("inline")) {
            at_ = is("[") ? past_group(at_) : at_ + 1;
        }
        note_type();
        const bool scope = is("namespace") || (is("extern") && text(at_ + 1).starts_with("\""));
        const bool type = is("struct") || is("class") || is("union") || is("enum");
        bool parameters = false;
        bool initializer = false;
        while (!done()) {
            const std::string_view token = text(at_);
            if (tokens_[at_].kind == TokenKind::kDirective) {
                ++at_;
            } else if (token == ";") {
                ++at_;
                piece.initializes = !scope && !type && !is_one_of(text(first), kNamingWords);
                break;
            } else if (token == "operator") {
                at_ += 2;  // operator=, operator(): its sign is no initializer
            } else if (token == "{") {
                at_ = past_group(at_);
                if (scope || (parameters && !initializer && !type && body_ends_here())) {
                    break;
                }
            } else if (token == "(" || token == "[") {
                parameters = parameters || token == "(";
                at_ = past_group(at_);
            } else {
                initializer = initializer || token == "=";
                ++at_;
            }
        }
        if (initializer || !parameters) {
            find_idle_captures(first, piece);
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
            while (index + 1 < tokens_.size() && text(index + 1) != ";") {
                ++index;
            }
            declared_types_.insert(std::string(text(index)));
        }
    }

    void find_idle_captures(std::size_t first, Piece& piece) const {
        const std::string_view word = text(first);
        if (word == "struct" || word == "class" || word == "union" || word == "namespace" ||
            word == "extern") {
            return;
        }
        std::size_t depth = 0;
        for (std::size_t index = first; index + 2 < at_; ++index) {
            const std::string_view token = tokens_[index].text;
            if (token == "{") {
                ++depth;
            } else if (token == "}" && depth > 0) {
                --depth;
            } else if (
                depth == 0 && token == "[" && text(index + 2) == "]" &&
                (text(index + 1) == "&" || text(index + 1) == "=")) {
                piece.idle_captures.push_back(tokens_[index + 1].begin);
            }
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

    const std::vector<Token>& tokens_;
    const IsType& is_type_;
    std::set<std::string> declared_types_;
    std::vector<Piece> pieces_;
    std::size_t at_ = 0;
};

}  // namespace

std::vector<Piece> split_cell(const std::vector<Token>& tokens, const IsType& is_type) {
    return Splitter(tokens, is_type).split();
}

}  // namespace cellkeep::cpp
