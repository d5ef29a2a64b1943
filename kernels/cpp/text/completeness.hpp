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

struct Flaw {
    std::size_t at = 0;  // bytes
    std::string message;
};

/// What is wrong with the cell's outline: a comment, a raw string or a bracket that is not closed,
/// or a closing bracket of another kind. clang 19 does not always end on such a cell.
/// Conditional directives leave the brackets to the preprocessor.
std::optional<Flaw> flaw_of(std::string_view code);

}  // namespace cellkeep::cpp
