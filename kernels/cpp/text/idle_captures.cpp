// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/text/idle_captures.hpp"

namespace cellkeep::cpp {

namespace {

/// After a value, `[` is a subscript; after `auto`, a structured binding.
bool begins_lambda(const TokenWalk& tokens, std::size_t index, std::size_t first) {
    if (tokens.text(index) != "[" || index == first) {
        return false;
    }
    const std::string_view before = tokens.text(index - 1);
    const bool value = tokens.is_word(index - 1) || before == ")" || before == "]" || before == "}";
    return !value || before == "return";
}

/// From its `[` past its body.
std::size_t past_lambda(const TokenWalk& tokens, std::size_t index) {
    index = tokens.past_group(index);
    if (tokens.text(index) == "<") {
        index = tokens.past_angles(index, true);
    }
    for (;;) {
        const std::string_view token = tokens.text(index);
        if (token == "{") {
            return tokens.past_group(index);
        }
        if (token.empty() || token == ";" || token == "," || token == ")" || token == "}") {
            return index;
        }
        index = tokens.past_group(index);
    }
}

}  // namespace

std::vector<std::size_t> idle_captures(
    const TokenWalk& tokens, std::size_t first, std::size_t end) {
    std::vector<std::size_t> found;
    for (std::size_t index = first; index < end;) {
        if (begins_lambda(tokens, index, first)) {
            const std::string_view by = tokens.text(index + 1);
            const std::string_view after = tokens.text(index + 2);
            if ((by == "&" || by == "=") && (after == "]" || after == ",")) {
                found.push_back(tokens.place(index + 1));
                if (after == ",") {
                    found.push_back(tokens.place(index + 2));
                }
            }
            index = past_lambda(tokens, index);
        } else {
            ++index;
        }
    }
    return found;
}

}  // namespace cellkeep::cpp
