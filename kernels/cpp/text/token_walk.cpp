// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/text/token_walk.hpp"

#include "kernels/cpp/text/words.hpp"

namespace cellkeep::cpp {

std::size_t TokenWalk::past_group(std::size_t index) const {
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

std::size_t TokenWalk::past_angles(std::size_t index, bool surely) const {
    std::size_t depth = 0;
    for (std::size_t next = index; next < tokens_.size();) {
        const std::string_view token = tokens_[next].text;
        // `a < b && c > d` is a comparison; `tuple<int&&>` is the only `&&` of a type.
        const bool rvalue = token == "&&" && (text(next + 1) == ">" || text(next + 1) == ",");
        const bool logical = token == "||" || (token == "&&" && !rvalue);
        if (token == ";" || token == "{" || token == "}" ||
            (!surely && (logical || is_one_of(token, kOperatorWords)))) {
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

std::size_t TokenWalk::past_pointers(std::size_t index) const {
    while (text(index) == "*" || text(index) == "&" || text(index) == "&&" ||
           text(index) == "const" || text(index) == "volatile") {
        ++index;
    }
    return index;
}

}  // namespace cellkeep::cpp
