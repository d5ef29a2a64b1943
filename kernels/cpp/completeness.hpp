// SPDX-License-Identifier: Apache-2.0
//
// Whether a person who pressed Enter has finished: brackets, literals and comments closed, and no
// operator left hanging.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::cpp {

struct Completeness {
    std::string status;  // "complete", "incomplete", "invalid"
    std::string indent;  // for the next line, if incomplete
};

Completeness completeness_of(std::string_view code);

/// Where the first bracket stands that nothing closes, in bytes; nothing if all are closed, or if
/// conditional directives leave it to the preprocessor. clang 19 does not always come to an end
/// with such a cell.
std::optional<std::size_t> open_bracket(std::string_view code);

}  // namespace cellkeep::cpp
