// SPDX-License-Identifier: Apache-2.0
//
// Splits the top level of a cell. Declarations stay where they are, statements have to go into a
// function, and an expression at the end without a semicolon is the cell's value.
#pragma once

#include "kernels/cpp/text/tokens.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cpp {

struct Piece {
    enum class Kind { kDirective, kDeclaration, kStatement, kValue };
    Kind kind = Kind::kStatement;
    std::size_t begin = 0;  // bytes of the cell: [begin, end)
    std::size_t end = 0;
    bool initializes = false;  // of a declaration: it may be of variables, whose initializers run
    bool defines_main = false;  // of a declaration: `int main() { … }`, the cell is a whole program
    bool calls_main = false;    // of a statement or value: `main();`
    std::vector<std::size_t> idle_captures;  // of a declaration (idle_captures.hpp)
};

/// What a qualified name ("std::string", "P") means before the cell.
enum class Meaning {
    kUnknown,
    kType,   // or a template of types
    kValue,  // anything else: also functions, namespaces and macros
};
using MeaningOf = std::function<Meaning(std::string_view name)>;

/// Returns the pieces in the order of the cell. Never fails: what it cannot decide is a statement,
/// and the compiler reports what is wrong with it.
std::vector<Piece> split_cell(const std::vector<Token>& tokens, const MeaningOf& meaning_of);

}  // namespace cellkeep::cpp
