// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/text/main_function.hpp"

#include "kernels/cpp/text/words.hpp"

#include <string_view>

namespace cellkeep::cpp {

namespace {

/// `main(`, and no member's name.
bool names_main(const TokenWalk& walk, std::size_t index) {
    const std::string_view before = index > 0 ? walk.text(index - 1) : std::string_view();
    return walk.text(index) == "main" && walk.text(index + 1) == "(" && before != "::" &&
           before != "." && before != "->";
}

}  // namespace

bool declares_main(const TokenWalk& walk, std::size_t begin, std::size_t end) {
    std::size_t index = begin;
    while (index < end && !names_main(walk, index)) {
        index = walk.past_group(index);  // not in the body
    }
    return index < end;
}

bool calls_main(const TokenWalk& walk, std::size_t begin, std::size_t end) {
    for (std::size_t index = begin; index < end; ++index) {
        // `int main();` only says that there is one.
        const bool declared =
            index > begin && walk.is_word(index - 1) && !is_statement_word(walk.text(index - 1));
        if (names_main(walk, index) && !declared) {
            return true;
        }
    }
    return false;
}

}  // namespace cellkeep::cpp
