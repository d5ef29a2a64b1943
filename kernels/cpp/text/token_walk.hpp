// SPDX-License-Identifier: Apache-2.0
//
// Steps over tokens of a cell for which no name has to be looked up: groups, template arguments,
// pointers.
#pragma once

#include "kernels/cpp/text/tokens.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace cellkeep::cpp {

class TokenWalk {
 public:
    /// `tokens` outlives this.
    explicit TokenWalk(const std::vector<Token>& tokens) : tokens_(tokens) {}

    /// Empty after the last token.
    std::string_view text(std::size_t index) const {
        return index < tokens_.size() ? tokens_[index].text : std::string_view();
    }
    /// Its place in bytes. Precondition: the token exists.
    std::size_t place(std::size_t index) const { return tokens_[index].begin; }
    bool is_word(std::size_t index) const {
        return index < tokens_.size() && tokens_[index].kind == TokenKind::kWord;
    }

    /// From an opening bracket past its closing one; past one token otherwise.
    std::size_t past_group(std::size_t index) const;

    /// From a `<` past its `>`; `index` itself if it does not look like template arguments.
    /// `surely`: the name before is a template's, so that `&&` and `||` are no comparisons.
    std::size_t past_angles(std::size_t index, bool surely) const;

    /// Past `*`, `&`, `&&` and what qualifies them.
    std::size_t past_pointers(std::size_t index) const;

 protected:
    const std::vector<Token>& tokens_;
};

}  // namespace cellkeep::cpp
